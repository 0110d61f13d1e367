"""Real bugs of public programs, before and after their fix; `python -m tests.wild --sources FOLDER` makes the page."""
