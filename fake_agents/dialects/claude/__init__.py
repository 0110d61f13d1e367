"""The wire formats of claude: `print_mode` is one prompt as an argument, `session_mode` many prompts on stdin."""
