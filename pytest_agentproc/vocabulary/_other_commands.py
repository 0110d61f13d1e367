"""The commands beside the conversation: what the real CLIs print for them. Values alone.

The CLI is logged in, and has no MCP servers, plugins and sessions.
"""

from __future__ import annotations

from pytest_agentproc.vocabulary._command_line import CommandAnswer

OPENCODE_ERROR_PREFIX = "\x1b[91m\x1b[1mError: \x1b[0m"
_CLAUDE_MCP_COMMANDS = "add,add-json,add-from-claude-desktop,get,list,remove,reset-project-choices,serve,help"
_CLAUDE_PLUGIN_COMMANDS = (
    "details,disable,enable,eval,help,init,install,i,list,marketplace,new,prune,remove,tag,uninstall,update,validate"
)
_NO_CLAUDE_COMMAND = CommandAnswer(1, stderr="error: unknown command '{1}'")
_CLAUDE_PLUGINS = "".join(
    f"\n  \u276f cc-plugin-{name}@builtin\n    Status: \u2714 enabled\n"
    for name in ("agents-md", "plugin-authoring", "privacy")
)
_NO_CLAUDE_SERVER = CommandAnswer(1, stderr='No MCP server named "{1}". Run `claude mcp add` to add one.')


def _miss_argument(name: str) -> CommandAnswer:
    return CommandAnswer(1, stderr=f"error: missing required argument '{name}'")


_NO_CLAUDE_SESSION = "No session matching '{1}'. Run 'claude agents' to list running sessions."
_NO_CLAUDE_OPTION = CommandAnswer(1, stderr="error: unknown option '{1}'")
CLAUDE_COMMANDS = {
    **{
        group: CommandAnswer(1, stderr=f"Usage: claude {usage} [options] [command]")
        for group, usage in (
            ("mcp", "mcp"),
            ("auth", "auth"),
            ("plugin", "plugin|plugins"),
            ("plugin marketplace", "plugin marketplace"),
        )
    },
    "mcp add": _miss_argument("name"),
    "mcp add *": _miss_argument("commandOrUrl"),
    "mcp add-json": _miss_argument("name"),
    "mcp add-json *": _miss_argument("json"),
    **dict.fromkeys(("plugin install", "plugin uninstall", "plugin enable", "plugin update"), _miss_argument("plugin")),
    "plugin disable": CommandAnswer(1, stderr="Please specify a plugin name or use --all to disable all plugins"),
    "plugin validate": _miss_argument("path"),
    "plugin marketplace add": _miss_argument("source"),
    "plugin marketplace !add,help,list,remove,rm,update": _NO_CLAUDE_COMMAND,
    "plugin marketplace remove *": CommandAnswer(
        1, stderr="\u2718 Failed to remove marketplace: Marketplace '{1}' not found"
    ),
    "plugin install *": CommandAnswer(
        1,
        'Installing plugin "{1}"...',
        '\u2718 Failed to install plugin "{1}": Plugin "{1}" not found in any configured marketplace.',
    ),
    "plugin uninstall *": CommandAnswer(
        1, stderr='\u2718 Failed to uninstall plugin "{1}": Plugin "{1}" not found in installed plugins'
    ),
    **{
        f"plugin {command} *": CommandAnswer(
            1,
            stderr=f'\u2718 Failed to {command} plugin "{{1}}": Plugin "{{1}}" not found in any editable settings '
            "scope. Use plugin@marketplace format.",
        )
        for command in ("enable", "disable")
    },
    "plugin update *": CommandAnswer(
        1,
        'Checking for updates for plugin "{1}"\u2026',
        '\u2718 Failed to update plugin "{1}": Plugin "{1}" is not installed',
    ),
    **{command: CommandAnswer(1, stderr=f"Usage: claude {command} <id|name>") for command in ("logs", "attach")},
    **dict.fromkeys(("attach *", "stop *", "kill *"), CommandAnswer(1, stderr=_NO_CLAUDE_SESSION)),
    **dict.fromkeys(("rm *", "respawn *"), CommandAnswer(1, stderr="No session matching '{1}'")),
    **dict.fromkeys(("auth --*", "mcp list --*"), _NO_CLAUDE_OPTION),
    "mcp list": CommandAnswer(stdout="No MCP servers configured. Use `claude mcp add` to add a server."),
    "mcp get *": _NO_CLAUDE_SERVER,
    "mcp remove *": _NO_CLAUDE_SERVER,
    **dict.fromkeys(("mcp get", "mcp remove"), CommandAnswer(1, stderr="error: missing required argument 'name'")),
    f"plugin !{_CLAUDE_PLUGIN_COMMANDS}": _NO_CLAUDE_COMMAND,
    "auth !login,logout,status,help": _NO_CLAUDE_COMMAND,
    f"mcp !{_CLAUDE_MCP_COMMANDS}": _NO_CLAUDE_COMMAND,
    "plugin list": CommandAnswer(stdout=f"Built-in plugins:\n{_CLAUDE_PLUGINS}"),
    "plugin marketplace list": CommandAnswer(
        stdout="Configured marketplaces:\n\n  \u276f anthropic-plugin-directory\n"
        "    Source: Built in (Anthropic Directory)\n"
    ),
    "agents": CommandAnswer(
        1,
        stderr="'claude agents' requires an interactive terminal (output is piped or redirected) \u2014 use "
        "'claude agents --json' for a machine-readable list.",
    ),
    "doctor --*": CommandAnswer(1, stderr="error: unknown option '{1}'"),
    "update --*": CommandAnswer(1, stderr="error: unknown option '{1}'"),
}


def _refuse_with_usage(error: str, usage: str) -> CommandAnswer:
    return CommandAnswer(2, stderr=f"error: {error}\n\nUsage: codex {usage}\n\nFor more information, try '--help'.")


_CODEX_NEEDS = "the following required arguments were not provided:"
_NO_CODEX_LOGIN = CommandAnswer(
    1, stderr="Not signed in. Please run 'codex login' to sign in with ChatGPT, then re-run 'codex cloud'."
)
_CODEX_GROUPS = {
    "plugin": ("Manage Codex plugins", "add,list,marketplace,remove,help"),
    "features": ("Inspect feature flags", "list,enable,disable,help"),
    "debug": ("Debugging tools", "models,app-server,prompt-input,help"),
}
CODEX_COMMANDS = {
    **{
        group: CommandAnswer(2, stderr=f"{title}\n\nUsage: codex {group} [OPTIONS] <COMMAND>")
        for group, (title, _) in _CODEX_GROUPS.items()
    },
    **{
        f"{group} !{known}": _refuse_with_usage("unrecognized subcommand '{1}'", f"{group} [OPTIONS] <COMMAND>")
        for group, (_, known) in _CODEX_GROUPS.items()
    },
    "plugin list": CommandAnswer(stdout="No marketplace plugins found."),
    "mcp list --*": _refuse_with_usage("unexpected argument '{1}' found", "mcp list [OPTIONS]"),
    "mcp login *": CommandAnswer(1, stderr="Error: No MCP server named '{1}' found."),
    "mcp logout *": CommandAnswer(1, stderr="Error: No MCP server named '{1}' found in configuration."),
    "mcp add *": _refuse_with_usage(
        f"{_CODEX_NEEDS}\n  <COMMAND|--url <URL>>", "mcp add [OPTIONS] <NAME> (--url <URL> | -- <COMMAND>...)"
    ),
    "unarchive *": CommandAnswer(1, stderr="Error: No archived session found matching '{1}'."),
    "delete *": CommandAnswer(1, stderr="Error: No active or archived session found matching '{1}'."),
    **{
        command: _refuse_with_usage(f"{_CODEX_NEEDS}\n  <SESSION>", f"{command} <SESSION>")
        for command in ("archive", "unarchive")
    },
    "apply *": CommandAnswer(1, stderr="Error: ChatGPT backend requests require Codex backend auth"),
    "cloud list": _NO_CODEX_LOGIN,
    "cloud !list,exec,status,apply,diff,help": _refuse_with_usage(
        "unrecognized subcommand '{1}'", "cloud [OPTIONS] [COMMAND]"
    ),
    "review": CommandAnswer(
        1, stderr="Error: Specify --uncommitted, --base, --commit, or provide custom review instructions"
    ),
    **dict.fromkeys(
        ("fork *", "resume *", "resume", "fork"), CommandAnswer(1, stderr="Error: stdin is not a terminal")
    ),
    "sandbox": CommandAnswer(1, stderr="Error: sandbox command must not be empty"),
    "exec review": CommandAnswer(
        1, stderr="Error: Specify --uncommitted, --base, --commit, or provide custom review instructions"
    ),
    "exec fork": _refuse_with_usage(f"{_CODEX_NEEDS}\n  <SESSION_ID>", "exec fork <SESSION_ID> [PROMPT]"),
    "apply": _refuse_with_usage(f"{_CODEX_NEEDS}\n  <TASK_ID>", "apply <TASK_ID>"),
    "login status": CommandAnswer(
        stderr="API key configured - ***\nAuthentication is checked when you send a request."
    ),
    "login status --*": _refuse_with_usage("unexpected argument '{1}' found", "login status [OPTIONS]"),
    "logout": CommandAnswer(stderr="Successfully logged out"),
    "login --*": _refuse_with_usage("unexpected argument '{1}' found", "login [OPTIONS] [COMMAND]"),
    "mcp": CommandAnswer(2, stderr="Manage external MCP servers for Codex\n\nUsage: codex mcp [OPTIONS] <COMMAND>"),
    **{
        f"mcp {command}": _refuse_with_usage(f"{_CODEX_NEEDS}\n  <NAME>", f"mcp {command} <NAME>")
        for command in ("add", "get", "remove", "login", "logout")
    },
    "mcp list": CommandAnswer(stdout="No MCP servers configured yet. Try `codex mcp add my-tool -- my-command`."),
    "mcp get *": CommandAnswer(1, stderr="Error: No MCP server named '{1}' found."),
    "mcp remove *": CommandAnswer(stdout="No MCP server named '{1}' found."),
    "mcp !list,get,add,remove,login,logout,help": _refuse_with_usage(
        "unrecognized subcommand '{1}'", "mcp [OPTIONS] <COMMAND>"
    ),
    "archive *": CommandAnswer(1, stderr="Error: No active session found matching '{1}'."),
    "cloud": _NO_CODEX_LOGIN,
}
_GEMINI_MISSES = "Not enough non-option arguments: got 0, need at least"
_GEMINI_NEEDS = CommandAnswer(1, stderr="You need at least one command before continuing.")
GEMINI_COMMANDS = {
    "mcp": _GEMINI_NEEDS,
    "mcp add": CommandAnswer(1, stderr=f"{_GEMINI_MISSES} 2"),
    **dict.fromkeys(
        (
            *("extensions", "skills", "hooks", "skills install"),
            *(f"mcp {command}" for command in ("remove", "enable", "disable")),
            *(f"extensions {command}" for command in ("install", "enable", "disable", "new", "validate")),
        ),
        CommandAnswer(1, stderr=f"{_GEMINI_MISSES} 1"),
    ),
    "extensions uninstall": CommandAnswer(
        1,
        stderr="Please include at least one extension name to uninstall as a positional argument, or use the --all "
        "flag.",
    ),
    "skills !list,enable,disable,install,uninstall,link": _GEMINI_NEEDS,
    "mcp list": CommandAnswer(stderr="No MCP servers configured."),
    "mcp remove *": CommandAnswer(stderr='Server "{1}" not found in project settings.'),
    "mcp !add,remove,list,enable,disable": CommandAnswer(1, stderr="Unknown argument: {1}"),
    **dict.fromkeys(
        ("mcp enable *", "mcp disable *"),
        CommandAnswer(
            stderr="\x1b[31mError:\x1b[0m Server '{1}' not found. Use 'gemini mcp' to see available servers."
        ),
    ),
    **dict.fromkeys(
        ("mcp list --*", "extensions list --*", "skills list --*"), CommandAnswer(1, stderr="Unknown argument: {1}")
    ),
    "gemma": _GEMINI_NEEDS,
    "skills uninstall": CommandAnswer(1, stderr=f"{_GEMINI_MISSES} 1"),
    "skills uninstall *": CommandAnswer(stderr='Skill "{1}" is not installed in the user scope.'),
    "skills enable *": CommandAnswer(stderr='Skill "{1}" is already enabled.'),
    "extensions config": CommandAnswer(stderr="No extensions installed."),
    "extensions disable *": CommandAnswer(1, stderr="Extension with name {1} does not exist."),
    "extensions list": CommandAnswer(stderr="No extensions installed."),
    "extensions uninstall *": CommandAnswer(1, stderr='Failed to uninstall "{1}": Extension not found.'),
    "extensions !install,uninstall,list,update,disable,enable,link,new,validate,config": _GEMINI_NEEDS,
    "skills list": CommandAnswer(stdout="No skills discovered."),
    "hooks !migrate": _GEMINI_NEEDS,
}
_PI_SOURCE = "\nUsage: pi {command} <source> [-l] [--approve|--no-approve]"
PI_COMMANDS = {
    "list": CommandAnswer(stdout="No packages installed."),
    **{
        f"{command} --*": CommandAnswer(1, stderr=f'Unknown option {{1}} for "{command}".')
        for command in ("list", "remove", "uninstall")
    },
    "install": CommandAnswer(1, stderr=f"Missing install source.{_PI_SOURCE.replace('{command}', 'install')}"),
    **dict.fromkeys(
        ("remove", "uninstall"),
        CommandAnswer(1, stderr=f"Missing remove source.{_PI_SOURCE.replace('{command}', 'remove')}"),
    ),
    **dict.fromkeys(
        ("remove *", "uninstall *"),
        CommandAnswer(1, "Removing {1}...", "No matching package found for {1}"),
    ),
    "update !self,pi,--self,--all,--extensions": CommandAnswer(1, stderr="Error: No matching package found for {1}"),
}
PI_1_COMMANDS = {
    **PI_COMMANDS,
    "auth !login,logout,print-api-key,print-bearer-token,check": CommandAnswer(
        1,
        stderr='Error: Unknown auth command "{1}". Use "pi auth login", "pi auth logout", "pi auth print-api-key", '
        '"pi auth print-bearer-token", or "pi auth check".',
    ),
    "auth logout": CommandAnswer(1, stderr="Usage: pi auth logout <provider>"),
    "auth check": CommandAnswer(2, stderr="Error: Auth checks require --provider <provider> or --model <model>"),
    "mcp add": CommandAnswer(1, stderr="Usage: pi mcp add <server> [options] (--url <url> | -- <command> [args...])"),
    "mcp remove": CommandAnswer(1, stderr="Usage: pi mcp remove <server> [-l]"),
    "mcp remove *": CommandAnswer(1, stderr='No global MCP server named "{1}" in ~/.pi/agent/mcp.json.'),
    "auth login": CommandAnswer(1, stderr="Usage: pi auth login <provider> [--api-key] [--no-browser]"),
    "mcp !add,remove,list,login,logout": CommandAnswer(1, stderr='Unknown mcp command "{1}".'),
    "auth": CommandAnswer(stdout="Usage:\n  pi auth login <provider> [--api-key] [--no-browser]"),
    "mcp": CommandAnswer(stdout="Usage:\n  pi mcp add <server> [options] -- <command> [args...]"),
    "mcp list": CommandAnswer(stdout="No MCP servers configured. Add them to ~/.pi/agent/mcp.json or .pi/mcp.json."),
}
_OPENCODE_WRONG_ID = CommandAnswer(
    1, stderr=f'{OPENCODE_ERROR_PREFIX}Unexpected error\n\nExpected a string starting with "ses", got "{{1}}"'
)
_OPENCODE_LOGINS = CommandAnswer(
    stdout="\u250c  Credentials \x1b[90m~/.local/share/opencode/auth.json\n\u2502\n\u2514  0 credentials\n",
    stderr="\x1b[0m",
)
OPENCODE_COMMANDS = {
    "auth list": _OPENCODE_LOGINS,
    "providers list": _OPENCODE_LOGINS,
    "models": CommandAnswer(stdout="opencode/big-pickle\nfake/m1"),
    "models opencode": CommandAnswer(stdout="opencode/big-pickle"),
    **{
        command: CommandAnswer(1, stderr=f"opencode {name}")
        for command, name in (
            *((group, group) for group in ("session", "mcp", "providers", "agent", "debug", "github")),
            ("plugin", "plugin <module>"),
            ("import", "import <file>"),
            ("pr", "pr <number>"),
            ("session delete", "session delete <sessionID>"),
            ("session list *", "session list"),
            ("models --*", "models [provider]"),
            ("github !install,run", "github"),
            ("auth", "providers"),
            ("auth !list,ls,login,logout", "providers"),
            ("providers !list,ls,login,logout", "providers"),
            ("agent !list,create", "agent"),
        )
    },
    "export": CommandAnswer(stderr="Exporting session: latest"),
    "models fake": CommandAnswer(stdout="fake/m1"),
    "models !opencode": CommandAnswer(1, stderr=f"{OPENCODE_ERROR_PREFIX}Provider not found: {{1}}"),
    "session list": CommandAnswer(),
    "session !list,delete": CommandAnswer(1, stderr="opencode session\n\nmanage sessions"),
    "mcp list": CommandAnswer(
        stdout="\u250c  MCP Servers\n\u2502\n\u25b2  No MCP servers configured\n\u2502\n"
        "\u2514  Add servers with: opencode mcp add\n",
        stderr="\x1b[0m",
    ),
    "mcp !add,list,ls,auth,logout,debug": CommandAnswer(
        1, stderr="opencode mcp\n\nmanage MCP (Model Context Protocol) servers"
    ),
    "session delete ses*": CommandAnswer(1, stderr=f"{OPENCODE_ERROR_PREFIX}Session not found: {{1}}"),
    "session delete *": _OPENCODE_WRONG_ID,
    "export ses*": CommandAnswer(
        1, stderr=f"Exporting session: {{1}}\n{OPENCODE_ERROR_PREFIX}Session not found: {{1}}"
    ),
    "export *": _OPENCODE_WRONG_ID,
}
