"""The command lines of the kit's own dialects, one record each, as the real CLIs have them. Values alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_agentproc.vocabulary._command_line import (
    CommandAnswer,
    CommandLine,
    FolderTrust,
    ResumeOptions,
    UnobeyedOption,
    ValueCheck,
)
from pytest_agentproc.vocabulary._known_names import CODEX_FEATURES, MODEL_WORDS, PROVIDERS
from pytest_agentproc.vocabulary._other_commands import (
    CLAUDE_COMMANDS,
    CODEX_COMMANDS,
    GEMINI_COMMANDS,
    OPENCODE_COMMANDS,
    OPENCODE_ERROR_PREFIX,
    PI_1_COMMANDS,
    PI_COMMANDS,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_CLAUDE_RESUME_ERROR = "Error: --resume requires a valid session ID or session title when used with --print"
_CLAUDE_UNOBEYED = (
    UnobeyedOption(
        "--json-schema",
        "has its model fill the schema; the fake's result has `structured_output` only if its text is a JSON object",
    ),
    UnobeyedOption(
        "--max-turns",
        "ends each turn of a session after so many answers of its model; the fake does so in print mode only",
        also="--input-format=stream-json",
    ),
    UnobeyedOption("--max-budget-usd", "ends the run once it has cost so much; the fake's run costs nothing"),
    UnobeyedOption("--tools", "lists only these tools in its first event, and uses no others"),
    UnobeyedOption("--disallowedTools", "leaves these tools out of its first event, and does not use them"),
    UnobeyedOption("--agents", "lists these agents in its first event"),
    UnobeyedOption("--agent", "answers as this agent"),
    UnobeyedOption("--add-dir", "lists these folders in its first event"),
    UnobeyedOption("--plugin-dir", "lists these plugins in its first event, and runs their hooks"),
    UnobeyedOption("--plugin-url", "lists these plugins in its first event, and runs their hooks"),
    UnobeyedOption("--worktree", "works in a new worktree of Git"),
    UnobeyedOption(
        "--permission-prompt-tool", "asks this tool before it uses another", unless="--input-format=stream-json"
    ),
    UnobeyedOption("--debug-file", "writes its log there"),
    UnobeyedOption("--debug-to-stderr", "prints its log on stderr"),
    UnobeyedOption("--forward-subagent-text", "prints the texts of its sub-agents"),
    UnobeyedOption("--prompt-suggestions", "prints a suggestion after each turn"),
    UnobeyedOption("--brief", "answers by a tool"),
    UnobeyedOption("--bg", "starts in the background, and ends at once"),
    UnobeyedOption("--cloud", "has a session in the cloud answer"),
    UnobeyedOption("--desktop", "opens the desktop app"),
    UnobeyedOption("--teleport", "takes over a session from the cloud"),
    UnobeyedOption("--remote-control", "can be steered from elsewhere"),
    UnobeyedOption("--tmux", "opens a session of tmux"),
    UnobeyedOption("--from-pr", "resumes the session of a pull request"),
    UnobeyedOption("--init", "runs the hooks of the event Setup"),
    UnobeyedOption("--init-only", "runs the hooks of the event Setup, and ends"),
    UnobeyedOption("--maintenance", "runs the hooks of the event Setup"),
    UnobeyedOption("--rewind-files", "sets files back, and ends"),
    UnobeyedOption("--resume-session-at", "resumes the session at that message"),
    UnobeyedOption("--sdk-url", "talks to that server in place of its stdin and stdout"),
    UnobeyedOption("--session-mirror", "prints what it writes into its session file, too"),
    UnobeyedOption("--enable-auth-status", "prints the state of its login"),
)
_CLAUDE_INVALID = "error: option '{shown}' argument '{value}' is invalid."
CLAUDE_COMMAND_LINE = CommandLine(
    unobeyed=_CLAUDE_UNOBEYED,
    answers=CLAUDE_COMMANDS,
    ends=(("--init-only", "", CommandAnswer()),),
    options={
        "": """
        --add-dir <directories...>; --agent <agent>; --agents <json-or-file>; --allow-dangerously-skip-permissions;
        --allowedTools --allowed-tools <tools...>; --append-system-prompt <prompt>; --autocompact <auto|tokens>;
        --ax-screen-reader; --bg --background; --bare; --betas <betas...>; --brief; --chrome;
        --cloud [description|session_id|url]; -c --continue; --dangerously-skip-permissions; -d --debug [filter];
        --debug-file <path>; --desktop; --disable-slash-commands; --disallowedTools --disallowed-tools <tools...>;
        --effort <level>; --environment <environment_id>; --exclude-dynamic-system-prompt-sections;
        --fallback-model <model>; --file <specs...>; --fork-session; --forward-subagent-text; --from-pr [value];
        -h --help; --ide; --include-hook-events; --include-partial-messages; --input-format <format> text stream-json;
        --json-schema <schema>; --max-budget-usd <amount>; --mcp-config <configs...>; --model <model>;
        -n --name <name>; --no-chrome; --no-session-persistence; --output-format <format> text json stream-json;
        --permission-mode <mode> acceptEdits auto bypassPermissions manual dontAsk plan !default;
        --permission-prompts <target> host none; --plugin-dir <path>; --plugin-url <url>; -p --print;
        --prompt-suggestions [value] true false 1 0 yes no on off; --remote-control [name];
        --remote-control-session-name-prefix <prefix>; --replay-user-messages; --restricted; -r --resume [value];
        --safe-mode; --session-id <uuid>; --setting-sources <sources>; --settings <file-or-json>; --strict-mcp-config;
        --system-prompt <prompt>; --system-prompt-snapshot <on|off> on off; --teleport [session]; --tmux;
        --tools <tools...>; --verbose; -v --version; -w --worktree [name]; --advisor <model>;
        --append-subagent-system-prompt <prompt>; --append-system-prompt-file <file>; --await-initialize;
        --channels <servers...>; --debug-to-stderr; --enable-auth-status; --enable-auto-mode; --init; --init-only;
        --initialize-fields <names>; --maintenance; --managed-settings <json>; --managed-settings-in-initialize;
        --max-thinking-tokens <tokens>; --max-turns <turns>; --permission-prompt-tool <tool>;
        --plugin-dir-no-mcp <path>; --prefill <text>; --project-config-root <path>; --resume-drops-turn <message-id>;
        --resume-session-at <message-id>; --rewind-files <user-message-id>; --sdk-url <url>; --session-mirror;
        --system-prompt-file <file>; --task-budget <tokens>; --thinking <mode> enabled adaptive disabled;
        --thinking-display <display>
        """
    },
    errors={
        "unknown": "error: unknown option '{word}'",
        "missing": "error: option '{shown}' argument missing",
        "choice": "error: option '{shown}' argument '{value}' is invalid. Allowed choices are {choices}.",
        "valued": "error: unknown option '{word}={value}'",
    },
    foreign={
        "": "agents attach auth auto-mode doctor gateway import install logs mcp plugin plugins purge respawn rm "
        "setup-token stop kill ultrareview update upgrade"
    },
    usage={"": "Usage: claude [options] [command] [prompt]"},
    conflicts=(
        (
            "--output-format=stream-json",
            "--verbose",
            "Error: When using --print, --output-format=stream-json requires --verbose",
        ),
        (
            "--include-partial-messages",
            "--output-format=stream-json",
            "Error: --include-partial-messages requires --print and --output-format=stream-json.",
        ),
        (
            "--input-format=stream-json",
            "--output-format=stream-json",
            "Error: --input-format=stream-json requires output-format=stream-json.",
        ),
        (
            "--replay-user-messages",
            "--input-format=stream-json",
            "Error: --replay-user-messages requires both --input-format=stream-json and --output-format=stream-json.",
        ),
        (
            "--session-id --resume",
            "--fork-session",
            "Error: --session-id with --continue or --resume also needs --fork-session.",
        ),
        (
            "--session-id --continue",
            "--fork-session",
            "Error: --session-id with --continue or --resume also needs --fork-session.",
        ),
        ("--resume-session-at", "--resume", "Error: --resume-session-at requires --resume"),
        ("--rewind-files", "--resume", "Error: --rewind-files requires --resume"),
        (
            "--resume=",
            "",
            f"{_CLAUDE_RESUME_ERROR}. Usage: claude -p --resume <session-id|title>",
        ),
    ),
    formats=(
        ("--input-format=stream-json", "session", ""),
        ("--output-format=stream-json", "print", ""),
        ("--output-format=json --verbose", "print", "array"),
        ("--output-format=json", "print", "json"),
        ("", "print", "text"),
    ),
    no_prompt="Error: Input must be provided either through stdin or as a prompt argument when using --print",
    servers="--mcp-config",
    settings="--settings",
    values=(
        *(
            ValueCheck(option, "number", "error: option '{shown}' argument '{value}' is invalid. must be a number")
            for option in ("--max-turns", "--max-thinking-tokens")
        ),
        ValueCheck(
            "--max-budget-usd",
            "positive",
            "error: option '{shown}' argument '{value}' is invalid. --max-budget-usd must be a number greater than 0",
        ),
        ValueCheck(
            "--json-schema",
            "closed",
            "Error: --json-schema is not valid JSON: JSON Parse error: Expected '}'",
        ),
        ValueCheck("--json-schema", "object", "Error: --json-schema must be a JSON object"),
        ValueCheck("--json-schema", "schema", "Error: --json-schema is not a valid JSON Schema: {reason}"),
        ValueCheck("--agents", "object-if-text", "Error: Invalid --agents configuration:"),
        ValueCheck(
            "--agents",
            "object-or-file",
            "Error: --agents file not found: {path} (a value that is not a JSON object is read as a file path)",
        ),
        ValueCheck(
            "--setting-sources",
            "listed user project local",
            (
                "Error processing --setting-sources: Invalid setting source: {value}. "
                "Valid options are: user, project, local"
            ),
        ),
        ValueCheck("--agents", "agents", "Error: Invalid --agents configuration:\n{reason}"),
        ValueCheck("--task-budget", "count", f"{_CLAUDE_INVALID} --task-budget must be a positive integer"),
        ValueCheck(
            "--autocompact",
            "tokens",
            f"{_CLAUDE_INVALID} It must be 'auto', or at least 100k (e.g. 500k, 200000, or 200 as shorthand)",
        ),
        ValueCheck(
            "--worktree",
            "repository",
            "Error: Can only use --worktree in a git repository, but {folder} is not a git repository. "
            "Configure a WorktreeCreate hook to use --worktree with other VCS systems.",
        ),
        *(
            ValueCheck(
                option, "no-folder", "Error reading system prompt file: EISDIR: illegal operation on a directory, read"
            )
            for option in ("--system-prompt-file", "--append-system-prompt-file")
        ),
        ValueCheck("--system-prompt-file", "existing", "Error: System prompt file not found: {path}"),
        ValueCheck("--append-system-prompt-file", "existing", "Error: Append system prompt file not found: {path}"),
    ),
    resuming=ResumeOptions(
        options=("--resume",),
        missing="No conversation found with session ID: {value}",
        odd=f"{_CLAUDE_RESUME_ERROR}. Usage: claude -p --resume <session-id|title>. "
        'Provided value "{value}" is not a UUID and does not match any session title.',
        stdout='{"type":"result","subtype":"error_during_execution","duration_ms":0,"duration_api_ms":0,"is_error":true,'
        '"num_turns":0,"stop_reason":null,"session_id":"{value}","total_cost_usd":0,"usage":{"output_tokens_details":'
        '{"thinking_tokens":0},"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,'
        '"output_tokens":0,"server_tool_use":{"web_search_requests":0,"web_fetch_requests":0},"service_tier":'
        '"standard","cache_creation":{"ephemeral_1h_input_tokens":0,"ephemeral_5m_input_tokens":0},"inference_geo":"",'
        '"iterations":[],"speed":"standard","fallback_credit":null},"modelUsage":{},"permission_denials":[],'
        '"uuid":"00000000-0000-4000-8000-000000000001",'
        '"errors":["No conversation found with session ID: {value}"],"result_index":0}',
        new="--session-id",
        taken="Error: Session ID {value} is already in use.",
        invalid="Error: Invalid session ID. Must be a valid UUID.",
        kept="claude",
        continues=("--continue",),
        forks="--fork-session",
        unkept="--no-session-persistence",
    ),
)

_CODEX_COMMON_OPTIONS = """
    -c --config <key=value>+; --enable <FEATURE>+; --disable <FEATURE>+; --strict-config; -i --image <FILE>+;
    -m --model <MODEL>; --dangerously-bypass-approvals-and-sandbox --yolo; --dangerously-bypass-hook-trust; -h --help
    """
_CODEX_ROOT_OPTIONS = """
    --oss; --local-provider <OSS_PROVIDER>; -p --profile <CONFIG_PROFILE_V2>;
    -s --sandbox <SANDBOX_MODE> read-only workspace-write danger-full-access; --approve-for-me; -C --cd <DIR>;
    --add-dir <DIR>+; -V --version
    """
_CODEX_EXEC_OPTIONS = """
    --worktree; --thread-source <SOURCE>; --cyber-access-program <PROGRAM> standard daybreak_blue daybreak_red;
    --skip-git-repo-check; --ephemeral; --ignore-user-config; --ignore-rules; --output-schema <FILE>;
    --json --experimental-json; -o --output-last-message <FILE>
    """
_CODEX_UNOBEYED = (
    UnobeyedOption("--output-schema", "has its model answer in JSON of that schema; the fake answers with its text"),
    UnobeyedOption("--cd", "works in that folder; a file that the fake's script writes is in the folder of the start"),
    UnobeyedOption("--worktree", "works in a new worktree of Git"),
    UnobeyedOption("--strict-config", "refuses a key of its configuration that it does not know"),
    UnobeyedOption("--listen", "answers at that address in place of its stdin and stdout", unless="--listen=stdio://"),
)


def _list_choices(choices: Sequence[str]) -> str:
    quoted = [f"`{choice}`" for choice in choices]
    return f"one of {', '.join(quoted)}" if len(quoted) > len(_PAIR) else " or ".join(quoted)


_PAIR = ("save-all", "none")
_CODEX_SETTINGS = {
    "history.persistence": _PAIR,
    "forced_login_method": ("chatgpt", "api"),
    "approval_policy": ("untrusted", "on-failure", "on-request", "granular", "never"),
    "sandbox_mode": ("read-only", "workspace-write", "danger-full-access"),
    "model_reasoning_summary": ("auto", "concise", "detailed", "none"),
    "model_verbosity": ("low", "medium", "high"),
    "web_search": ("disabled", "cached", "indexed", "live"),
    "file_opener": ("vscode", "vscode-insiders", "windsurf", "cursor", "none"),
    "personality": ("none", "friendly", "pragmatic"),
    "shell_environment_policy.inherit": ("core", "all", "none"),
    "cli_auth_credentials_store": ("file", "keyring", "auto", "ephemeral"),
}
_CODEX_TYPES = (
    ("number", "i64", "model_context_window model_auto_compact_token_limit"),
    ("number", "usize", "project_doc_max_bytes tool_output_token_limit history.max_bytes"),
    (
        "flag",
        "a boolean",
        "hide_agent_reasoning show_raw_agent_reasoning sandbox_workspace_write.network_access allow_login_shell",
    ),
    (
        "flag",
        "a boolean",
        "tui.animations suppress_unstable_features_warning experimental_use_unified_exec_tool",
    ),
    ("number", "u64", "background_terminal_max_timeout"),
    ("list", "a sequence", "notify sandbox_workspace_write.writable_roots project_doc_fallback_filenames"),
    ("table", "a map", "mcp_servers model_providers projects profiles marketplaces"),
    *(
        ("table", f"struct {struct}", key)
        for key, struct in (
            ("sandbox_workspace_write", "SandboxWorkspaceWrite"),
            ("features", "FeaturesToml"),
            ("shell_environment_policy", "ShellEnvironmentPolicyTomlRaw"),
            ("history", "History"),
            ("tui", "Tui"),
            ("tools", "ToolsToml"),
            ("otel", "OtelConfigToml"),
            ("agents", "AgentsToml"),
            ("skills", "SkillsConfig"),
            ("apps", "AppsConfigToml"),
            ("permissions", "PermissionsToml"),
            ("hooks", "HooksToml"),
            ("memories", "MemoriesToml"),
            ("plugins", "PluginsConfigToml"),
            ("notice", "Notice"),
            ("windows", "WindowsToml"),
            ("feedback", "FeedbackConfigToml"),
            ("analytics", "AnalyticsConfigToml"),
            ("audio", "RealtimeAudioToml"),
            ("realtime", "RealtimeToml"),
            ("ghost_snapshot", "GhostSnapshotToml"),
        )
    ),
    ("table", "struct RawMcpServerConfig", "mcp_servers.*"),
    ("table", "struct ModelProviderInfo", "model_providers.*"),
)
"""The kinds of settings, what they are called in an error, and the settings."""


CODEX_COMMAND_LINE = CommandLine(
    unobeyed=_CODEX_UNOBEYED,
    takes_empty=True,
    configs=("$CODEX_HOME/config.toml", "$HOME/.codex/config.toml"),
    providers=("openai", "ollama", "lmstudio", "amazon-bedrock", "fake"),
    answers=CODEX_COMMANDS,
    ends=(
        (
            "exec --oss",
            "--local-provider",
            CommandAnswer(
                1,
                stderr="Error: No default OSS provider configured. Use --local-provider=provider or set oss_provider "
                "to one of: lmstudio, ollama in config.toml",
            ),
        ),
    ),
    options={
        "": f"{_CODEX_COMMON_OPTIONS};{_CODEX_ROOT_OPTIONS}"
        """
    ; --remote <ADDR>; --remote-auth-token-env <ENV_VAR>; --worktree;
    -a --ask-for-approval <APPROVAL_POLICY> on-request never; --search; --no-alt-screen; --no-daemon
    """,
        "exec": f"{_CODEX_COMMON_OPTIONS};{_CODEX_ROOT_OPTIONS};{_CODEX_EXEC_OPTIONS}"
        "; --color <COLOR> always never auto",
        "exec resume": f"{_CODEX_COMMON_OPTIONS};{_CODEX_EXEC_OPTIONS}" + ";--last;--all",
        "app-server": """
        -c --config <key=value>+; --enable <FEATURE>+; --disable <FEATURE>+; --code-mode-host <URL>; --strict-config;
        --listen <URL>; --stdio; --analytics-default-enabled; --ws-auth <MODE> capability-token signed-bearer-token;
        --ws-token-file <PATH>; --ws-token-sha256 <HEX>; --ws-shared-secret-file <PATH>; --ws-issuer <ISSUER>;
        --ws-audience <AUDIENCE>; --ws-max-clock-skew-seconds <SECONDS>; -h --help
        """,
    },
    commands={
        "": {"exec": "exec", "e": "exec", "app-server": "app-server"},
        "exec": {"resume": "exec resume"},
    },
    foreign={
        "": "agents review login logout mcp plugin remote-control completion update doctor sandbox debug "
        "apply a resume queue archive delete migrate-rollouts unarchive fork cloud exec-server features help",
        "exec": "fork review help",
        "app-server": "daemon proxy generate-ts generate-json-schema help",
    },
    usage={
        "": "Usage: codex [OPTIONS] [PROMPT]\n       codex [OPTIONS] <COMMAND> [ARGS]",
        "exec": "Usage: codex exec [OPTIONS] [PROMPT]\n       codex exec [OPTIONS] <COMMAND> [ARGS]",
        "exec resume": "Usage: codex exec resume [OPTIONS] [SESSION_ID] [PROMPT]",
        "app-server": "Usage: codex app-server [OPTIONS] [COMMAND]",
    },
    words={"": 1, "exec": 1, "exec resume": 2, "app-server": 0},
    errors={
        "unknown": "error: unexpected argument '{name}' found\n\n  tip: to pass '{name}' as a value, use '-- {name}'"
        "\n\n{usage}\n\nFor more information, try '--help'.",
        "extra": "error: unexpected argument '{word}' found\n\n{usage}\n\nFor more information, try '--help'.",
        "command": "error: unrecognized subcommand '{word}'\n\n{usage}\n\nFor more information, try '--help'.",
        "missing": "error: a value is required for '{shown}' but none was supplied{choices}"
        "\n\nFor more information, try '--help'.",
        "choice": "error: invalid value '{value}' for '{shown}'{choices}\n\nFor more information, try '--help'.",
        "repeated": "error: the argument '{shown}' cannot be used multiple times"
        "\n\n{usage}\n\nFor more information, try '--help'.",
        "valued": "error: unexpected value '{value}' for '{shown}' found; no more were expected"
        "\n\n{usage}\n\nFor more information, try '--help'.",
        "conflict": "{words}\n\n{usage}\n\nFor more information, try '--help'.",
        "choices": "\n  [possible values: {choices}]",
    },
    code=2,
    takes_dashes=False,
    conflicts=(
        (
            "--approve-for-me --dangerously-bypass-approvals-and-sandbox",
            "",
            "error: the argument '--approve-for-me' cannot be used with '--dangerously-bypass-approvals-and-sandbox'",
        ),
    ),
    formats=(
        ("exec --json", "exec", ""),
        ("exec", "exec", "text"),
        ("app-server", "app-server", ""),
        ("", "", "Error: stdin is not a terminal"),
    ),
    errors_to=("stderr", "ERROR: {text}"),
    values=(
        ValueCheck("--config", "assignment", "Error parsing -c overrides: Invalid override (missing '='): {value}"),
        ValueCheck("--config", "named", "Error parsing -c overrides: Empty key in override: {value}"),
        ValueCheck("--cd", "existing", "Error: No such file or directory (os error 2)"),
        ValueCheck("--output-schema", "readable", "Failed to read output schema file {value}: {reason}", late=True),
        ValueCheck(
            "--output-schema",
            "file",
            "Output schema file {value} is not valid JSON: key must be a string at line 1 column 2",
            late=True,
        ),
        *(
            ValueCheck(
                "--config",
                f"set {key} {' '.join(choices)}",
                "Error loading config.toml: unknown variant `{set}`, expected "
                f"{_list_choices(choices)}\nin `{key}`\n",
            )
            for key, choices in _CODEX_SETTINGS.items()
        ),
        *(
            ValueCheck(
                "--config",
                f"set-type {kind} {keys}",
                f"Error loading config.toml: invalid type: {{reason}}, expected {words}\n",
            )
            for kind, words, keys in _CODEX_TYPES
        ),
        ValueCheck(
            "--config",
            "set-new openai ollama lmstudio",
            "Error loading config.toml: model_providers contains reserved built-in provider IDs: `{reason}`. Built-in "
            "providers cannot be overridden. Rename your custom provider (for example, `{reason}-custom`).",
        ),
        ValueCheck("--config", "set-provider", "Error: Model provider `{set}` not found"),
        ValueCheck(
            "--local-provider", "listed-with --oss lmstudio ollama", "Error: Model provider `{value}` not found"
        ),
        *(
            ValueCheck(option, f"one-of {' '.join(CODEX_FEATURES.split())}", "Error: Unknown feature flag: {value}")
            for option in ("--enable", "--disable")
        ),
        ValueCheck(
            "--model",
            "filled",
            "Error: thread/start: thread/start failed: No models are available. Set `model` explicitly or check your "
            "model catalog configuration. (code -32600)",
            late=True,
        ),
    ),
    paths=("<FILE>", "<DIR>"),
    message_file=(
        "--output-last-message",
        'Error: Failed to open last message file "{value}": {reason}',
        "Warning: no last agent message; wrote empty content to {value}",
    ),
    trust=FolderTrust(
        command="exec",
        allowed_by="--skip-git-repo-check --dangerously-bypass-approvals-and-sandbox",
        folder="--cd",
        words="Not inside a trusted directory and --skip-git-repo-check was not specified.",
    ),
    no_prompt="No prompt provided via stdin.",
    resuming=ResumeOptions(
        command="exec resume",
        unless="--last",
        missing="Error: thread/resume: thread/resume failed: no rollout found for thread id {value} (code -32600)",
        kept="codex",
        continues=("--last",),
        unkept="--ephemeral",
    ),
)
_GEMINI_UNOBEYED = (
    UnobeyedOption("--sandbox", "works in a container, and ends with 44 if the machine has none"),
    UnobeyedOption("--debug", "prints its log on stderr"),
    UnobeyedOption("--acp", "speaks ACP"),
    UnobeyedOption("--experimental-acp", "speaks ACP"),
    UnobeyedOption("--session-file", "goes on with the session of that file"),
)
GEMINI_COMMAND_LINE = CommandLine(
    unobeyed=_GEMINI_UNOBEYED,
    answers=GEMINI_COMMANDS,
    ends=(
        ("--list-sessions", "", CommandAnswer(stdout="No previous sessions found for this project.")),
        ("--list-extensions", "", CommandAnswer()),
        ("--delete-session", "", CommandAnswer(stderr="No sessions found for this project.")),
        (
            "--prompt-interactive",
            "",
            CommandAnswer(
                42, stderr="Error: The --prompt-interactive flag cannot be used when input is piped from stdin."
            ),
        ),
    ),
    options={
        "": """
        -d --debug; -m --model <value>; -p --prompt <value>; -i --prompt-interactive <value>; --skip-trust;
        -w --worktree <value>; -s --sandbox; -y --yolo; --approval-mode <value> default auto_edit yolo plan;
        --policy <value>; --admin-policy <value>; --acp; --experimental-acp; --allowed-mcp-server-names <value>;
        --allowed-tools <value>; -e --extensions <value>; -l --list-extensions; -r --resume [value];
        --session-file <value>; --session-id <value>; --list-sessions; --delete-session <value>;
        --include-directories <value>; --screen-reader; -o --output-format <value> text json stream-json;
        --raw-output; --accept-raw-output-risk; -v --version; -h --help
        """
    },
    foreign={"": "mcp extensions extension skills skill hooks hook gemma"},
    usage={"": "Usage: gemini [options] [command]"},
    trust=FolderTrust(
        allowed_by="--skip-trust",
        words="\x1b[31mGemini CLI is not running in a trusted directory. To proceed, either use `--skip-trust`, set "
        "the `GEMINI_CLI_TRUST_WORKSPACE=true` environment variable, or trust this directory in interactive mode. For "
        "more details, see https://geminicli.com/docs/cli/trusted-folders/#headless-and-automated-environments\x1b[0m",
        code=55,
        variable="GEMINI_CLI_TRUST_WORKSPACE",
        file=".gemini/trustedFolders.json",
        settings=".gemini/settings.json",
    ),
    errors={
        "unknown": "Unknown argument: {bare}\n{usage}",
        "missing": "Not enough arguments following: {bare}\n{usage}",
        "choice": 'Invalid values:\n  Argument: {longest}, Given: "{value}", Choices: {choices}\n{usage}',
        "conflict": "{words}\n{usage}",
    },
    quoted=True,
    takes_dashes=False,
    variants=True,
    conflicts=(
        ("--prompt WORD", "", "Cannot use both a positional prompt and the --prompt (-p) flag together"),
        ("--prompt --prompt-interactive", "", "Cannot use both --prompt (-p) and --prompt-interactive (-i) together"),
        (
            "--yolo --approval-mode",
            "",
            "Cannot use both --yolo (-y) and --approval-mode together. Use --approval-mode=yolo instead.",
        ),
        (
            "--worktree",
            "",
            "The --worktree flag is only available when experimental.worktrees is enabled in your settings.",
        ),
        (
            "--resume --session-id",
            "",
            "The flags --resume, --session-id, and --session-file are mutually exclusive. Please provide only one.",
        ),
    ),
    formats=(
        ("--output-format=stream-json", "stream", ""),
        ("--output-format=json", "json", ""),
        ("", "text", ""),
    ),
    prompt="--prompt",
    values=(
        ValueCheck(
            "--include-directories", "folder", "[WARN] Skipping unreadable directory: {value} ({reason}: {path})"
        ),
        ValueCheck("--session-id", "filled", "The --session-id option cannot be empty."),
        ValueCheck(
            "--session-id",
            "signs -_",
            'Invalid session ID "{value}": Only alphanumeric characters, dashes, and underscores are allowed.',
        ),
        ValueCheck(
            "--prompt",
            "once --prompt",
            "An unexpected critical error occurred:TypeError: query.startsWith is not a function",
        ),
        ValueCheck(
            "--session-file",
            "head sessionId",
            "Error importing session from file: File not found or invalid format: {value}",
            42,
        ),
        ValueCheck(
            "--session-file",
            "existing",
            "Error importing session from file: File not found or invalid format: {value}",
            42,
        ),
    ),
    no_prompt="No input provided via stdin. "
    "Input can be provided by piping data into gemini or using the --prompt option.",
    no_prompt_code=42,
    resuming=ResumeOptions(
        options=("--resume",),
        latest="latest",
        missing='Error resuming session: Invalid session identifier "{value}".',
        odd='Error resuming session: Invalid session identifier "{value}".',
        code=42,
        new="--session-id",
        taken='Error starting session: Session ID "{value}" already exists. '
        "Use --resume to resume it, or provide a different ID.",
    ),
)
_PI_UNOBEYED = (
    UnobeyedOption("--export", "writes the session as a page in HTML, and prints its path"),
    UnobeyedOption("--session-dir", "writes the file of its session there"),
    UnobeyedOption("--extension", "runs the code of that extension"),
    UnobeyedOption("--fork", "gives the session a new id"),
)
_PI_MODELS = CommandAnswer(
    stdout="provider  model  context  max-out  thinking  images\nfake      m1     128K     16.4K    no        no    "
)
PI_COMMAND_LINE = CommandLine(
    unobeyed=_PI_UNOBEYED,
    file_words="Error: File not found: {path}",
    configs=("$PI_CODING_AGENT_DIR/models.json", "$HOME/.pi/agent/models.json"),
    providers=PROVIDERS.split(),
    models=MODEL_WORDS.split(),
    answers=PI_COMMANDS,
    ends=tuple((f"--list-models={search}", "", _PI_MODELS) for search in ("", "fake", "m1")),
    options={
        "": """
        --provider <name>; --model <pattern>; --api-key <key>; --system-prompt <text>; --append-system-prompt <text>;
        --mode <mode>; -p --print; -c --continue; -r --resume; --session <path|id>; --fork <path|id>;
        --session-dir <dir>; --no-session; --models <patterns>; -nt --no-tools; -nbt --no-builtin-tools;
        -t --tools <tools>; --thinking <level>; -e --extension <path>; -ne --no-extensions; --skill <path>;
        -ns --no-skills; --prompt-template <path>; -np --no-prompt-templates; --theme <path>; --no-themes;
        -nc --no-context-files; --export <file>; --list-models [search]; --verbose; --offline; -h --help; -v --version
        """
    },
    foreign={"": "install remove uninstall update list config"},
    usage={"": "pi - AI coding assistant with read, bash, edit, write tools"},
    errors={"unknown": "Error: Unknown option: {word}", "missing": "Error: Unknown option: {word}"},
    splits=False,
    conflicts=tuple(
        (f"--fork {other}", "", f"Error: --fork cannot be combined with {other}")
        for other in ("--session", "--continue", "--resume", "--no-session")
    ),
    formats=(("--mode=rpc", "rpc", ""), ("--mode=json", "json", ""), ("", "json", "text")),
    errors_to=("stderr", "{text}"),
    values=(
        ValueCheck(
            "--extension",
            "existing",
            'Error: Failed to load extension "{path}": Extension path does not exist: {path}',
        ),
        ValueCheck(
            "--extension",
            "ending .ts .js .mjs .cjs .mts .cts",
            'Error: Failed to load extension "{path}": Failed to load extension: Unknown file extension "{reason}" for '
            '{path}\nHint: Start without extensions using "pi -ne".',
        ),
        ValueCheck(
            "--extension",
            "module",
            "Error: Failed to load extension \"{path}\": Failed to load extension: Cannot find module '{path}'",
        ),
        ValueCheck("--fork", "session-file", "Error: Cannot fork: source session file is empty or invalid: {path}"),
        ValueCheck("--export", "existing", "Error: File not found: {path}"),
        ValueCheck("--export", 'head "session"', "Error: Session file is not a valid pi session: {path}"),
        ValueCheck(
            "--provider",
            "provider",
            'Error: Unknown provider "{value}". Use --list-models to see available providers/models.',
        ),
        ValueCheck("--model", "model", 'Error: Model "{value}" not found. Use --list-models to see available models.'),
        ValueCheck("--session-dir", "no-file", "ENOTDIR: not a directory, open '{value}'"),
    ),
    resuming=ResumeOptions(
        options=("--session", "--fork"),
        unless="--no-session",
        prefix=True,
        files=True,
        missing="No session found matching '{value}'",
        odd="No session found matching '{value}'",
    ),
)
PI_1_COMMAND_LINE = replace(
    PI_COMMAND_LINE,
    options={
        "": """
        --provider <name>; --model <pattern>; --api-key <key>; --system-prompt <text>; --append-system-prompt <text>;
        --mode <mode> text json rpc; -p --print; -c --continue; -r --resume; --session <path|id>; --session-id <id>;
        --fork <path|id>; --session-dir <dir>; --no-session; -n --name <name>; --models <patterns>; -nt --no-tools;
        -nbt --no-builtin-tools; -t --tools <tools>; -xt --exclude-tools <tools>; --thinking <level>;
        -e --extension <path>; -ne --no-extensions; --no-mcp; --skill <path>; -ns --no-skills;
        --prompt-template <path>; -np --no-prompt-templates; --theme <path>; --use-theme <name>; --no-themes;
        -nc --no-context-files; --export <file>; --list-models [search]; --verbose; --tui-mode <mode>; -a --approve;
        -na --no-approve; --offline; -h --help; -v --version
        """
    },
    foreign={"": "install remove uninstall update list config auth mcp"},
    errors={
        **PI_COMMAND_LINE.errors,
        "choice": 'Error: Invalid mode "{value}". Valid values: text, json, rpc',
    },
    answers=PI_1_COMMANDS,
    resuming=replace(
        PI_COMMAND_LINE.resuming,
        new="--session-id",
        made="Warning: No project session found with id '{value}'; creating a new session with that id.",
        kept="pi",
        continues=("--continue",),
        forks="--fork",
        unkept="--no-session",
        folder="--session-dir",
    ),
    values=(
        ValueCheck(
            "--tui-mode",
            "listed regular fullscreen",
            'Error: Invalid TUI mode "{value}". Valid values: regular, fullscreen',
        ),
        ValueCheck(
            "--session-id",
            "name",
            "Error: Session id must be non-empty, contain only alphanumeric characters, '-', '_', and '.', and start "
            "and end with an alphanumeric character",
        ),
        *PI_COMMAND_LINE.values,
    ),
    conflicts=(
        *PI_COMMAND_LINE.conflicts,
        (
            "--provider",
            "--model",
            "Error: --provider requires --model (for example: --provider NAME --model <pattern>)",
        ),
    ),
)
"""That of 1.6.0."""
_OPENCODE_UNOBEYED = (
    UnobeyedOption("--dir", "works in that folder; a file that the fake's script writes is in the folder of the start"),
    UnobeyedOption("--attach", "has a server answer that runs already"),
    UnobeyedOption("--command", "runs that command, with the message as its arguments"),
    UnobeyedOption("--fork", "gives the session a new id"),
    UnobeyedOption("--share", "prints the address at which the session can be read"),
    UnobeyedOption("--print-logs", "prints its log on stderr"),
    UnobeyedOption("--interactive", "goes on in a terminal"),
    UnobeyedOption("--mdns", "tells its network that it is there"),
    UnobeyedOption("--cors", "lets pages of that origin read its answers"),
)
_OPENCODE_SERVER_ERROR = """{
  "name": "UnknownError",
  "data": {
    "message": "Unexpected server error. Check server logs for details.",
    "ref": "err_80d73fca"
  }
}"""
OPENCODE_COMMAND_LINE = CommandLine(
    unobeyed=_OPENCODE_UNOBEYED,
    configs=("$OPENCODE_CONFIG", "$HOME/.config/opencode/opencode.json", "opencode.json", "opencode.jsonc"),
    providers=PROVIDERS.split(),
    answers=OPENCODE_COMMANDS,
    options={
        "": "-h --help; -v --version",
        "run": """
        -h --help; -v --version; --print-logs; --log-level [value] DEBUG INFO WARN ERROR; --pure; --command [value];
        -c --continue; -s --session [value]; --fork; --share; -m --model [value]; --agent [value];
        --format [value] default json; -f --file [value...]; --title [value]; --attach [value]; -p --password [value];
        -u --username [value]; --dir [value]; --port [value]; --variant [value]; --thinking; -i --interactive; --auto
        """,
        "serve": """
        -h --help; -v --version; --print-logs; --log-level [value] DEBUG INFO WARN ERROR; --pure; --port [value];
        --hostname [value]; --mdns; --mdns-domain [value]; --cors [value...]
        """,
    },
    commands={"": {"run": "run", "serve": "serve"}},
    words={"serve": 0},
    foreign={
        "": "completion acp mcp attach debug providers auth agent upgrade uninstall web models stats export "
        "import github pr session plugin plug db"
    },
    usage={
        "": "opencode [project]",
        "run": "opencode run [message..]\n\nrun opencode with a message",
        "serve": "opencode serve\n\nstarts a headless opencode server",
    },
    errors=dict.fromkeys(("unknown", "choice", "command", "extra"), "{usage}"),
    conflicts=(
        ("run --fork", "--continue --session", f"{OPENCODE_ERROR_PREFIX}--fork requires --continue or --session"),
    ),
    formats=(
        ("run --format=json", "run", ""),
        ("run", "run", "text"),
        ("serve", "serve", ""),
        ("", "", "opencode needs a terminal: the fake has `opencode run` and `opencode serve`"),
    ),
    errors_to=("stderr", f"{OPENCODE_ERROR_PREFIX}{{text}}"),
    values=(
        ValueCheck("--dir", "existing", f"{OPENCODE_ERROR_PREFIX}Failed to change directory to {{value}}"),
        ValueCheck(
            "--dir",
            "no-file",
            f"{OPENCODE_ERROR_PREFIX}Unexpected error\n\nBadResource: FileSystem.access ({{path}}/opencode.jsonc)",
        ),
        ValueCheck("--attach", "never-with-scheme", f"{OPENCODE_ERROR_PREFIX}Session not found"),
        ValueCheck(
            "--attach",
            "never",
            f"{OPENCODE_ERROR_PREFIX}Unexpected error\n\nFailed to construct 'Request': "
            'Invalid URL "{value}/session"',
        ),
        ValueCheck("--model", "model /", f"{OPENCODE_ERROR_PREFIX}{_OPENCODE_SERVER_ERROR}"),
        ValueCheck("--command", "configured init review", f"{OPENCODE_ERROR_PREFIX}{_OPENCODE_SERVER_ERROR}"),
        ValueCheck("--file", "existing", f"{OPENCODE_ERROR_PREFIX}File not found: {{value}}"),
    ),
    no_prompt=f"{OPENCODE_ERROR_PREFIX}You must provide a message or a command",
    helps_on_stderr=True,
    resuming=ResumeOptions(
        options=("--session",),
        missing=f"{OPENCODE_ERROR_PREFIX}Session not found",
        odd=f"{OPENCODE_ERROR_PREFIX}Session not found",
    ),
)
