"""The kit's own dialects, one record each: the only place that states a fact of one. Values alone; loads no half."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_agentproc.vocabulary._command_line import CommandLine, ResumeOptions
from pytest_agentproc.vocabulary._dialect import Dialect, SignalReaction, StdinReading

if TYPE_CHECKING:
    from collections.abc import Mapping


_PACKAGE_OF_ENCODERS, _PACKAGE_OF_DECODERS = (
    "pytest_agentproc.fake_agents.dialects",
    "pytest_agentproc.supervisor.dialects",
)
_PACKAGE_OF_CLAUDE = f"{_PACKAGE_OF_ENCODERS}.claude"
_CLAUDE_ENCODER_MODULES = (
    _PACKAGE_OF_CLAUDE,
    *(f"{_PACKAGE_OF_CLAUDE}.{part}" for part in ("forms", "hooks", "servers", "print_mode")),
)
_CLAUDE_SESSION_ENCODER_MODULES = (
    *_CLAUDE_ENCODER_MODULES,
    *(f"{_PACKAGE_OF_CLAUDE}.{part}" for part in ("control", "prompts", "refusals", "tasks", "turns", "session_mode")),
)
_CLAUDE_STEP_NAMES = (
    "nested",
    "delta",
    "think",
    "tool",
    "tool_done",
    "event",
    "line",
    "task",
    "task_done",
    "background_turn",
)
_CLAUDE_AUTH_STATUS_OUTPUT = '{\n  "loggedIn": true,\n  "authMethod": "api_key",\n  "apiProvider": "firstParty"\n}'
_CLAUDE_RESUME_ERROR = "Error: --resume requires a valid session ID or session title when used with --print"
_GEMINI_MODEL_NAME = "gemini-2.5-flash"
_GEMINI_COMMON_OPTIONS = ("-y", "-m", _GEMINI_MODEL_NAME, "-e", "", "-o")

_CLAUDE_COMMAND_LINE = CommandLine(
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
        (
            "--resume=",
            "",
            f"{_CLAUDE_RESUME_ERROR}. Usage: claude -p --resume <session-id|title>",
        ),
    ),
    formats=(
        ("--input-format=stream-json", "session", ""),
        ("--output-format=stream-json", "print", ""),
        ("--output-format=json", "print", "json"),
        ("", "print", "text"),
    ),
    no_prompt="Error: Input must be provided either through stdin or as a prompt argument when using --print",
    servers="--mcp-config",
    settings="--settings",
    values=(
        *(
            (option, "number", "error: option '{shown}' argument '{value}' is invalid. must be a number")
            for option in ("--max-turns", "--max-thinking-tokens")
        ),
        (
            "--max-budget-usd",
            "positive",
            "error: option '{shown}' argument '{value}' is invalid. --max-budget-usd must be a number greater than 0",
        ),
        (
            "--json-schema",
            "closed",
            "Error: --json-schema is not valid JSON: JSON Parse error: Expected '}'",
        ),
        ("--json-schema", "object", "Error: --json-schema must be a JSON object"),
        ("--agents", "object-if-text", "Error: Invalid --agents configuration:"),
        (
            "--agents",
            "object-or-file",
            "Error: --agents file not found: {path} (a value that is not a JSON object is read as a file path)",
        ),
        (
            "--setting-sources",
            "listed user project local",
            (
                "Error processing --setting-sources: Invalid setting source: {value}. "
                "Valid options are: user, project, local"
            ),
        ),
        ("--system-prompt-file", "existing", "Error: System prompt file not found: {path}"),
        ("--append-system-prompt-file", "existing", "Error: Append system prompt file not found: {path}"),
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
_CODEX_COMMAND_LINE = CommandLine(
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
        ("--config", "assignment", "Error parsing -c overrides: Invalid override (missing '='): {value}"),
        ("--config", "named", "Error parsing -c overrides: Empty key in override: {value}"),
        ("--cd", "existing", "Error: No such file or directory (os error 2)"),
        (
            "--output-schema",
            "existing",
            "Failed to read output schema file {value}: No such file or directory (os error 2)",
        ),
        (
            "--output-schema",
            "file",
            "Output schema file {value} is not valid JSON: key must be a string at line 1 column 2",
        ),
        (
            "--config",
            "set approval_policy untrusted on-failure on-request granular never",
            (
                "Error loading config.toml: unknown variant `{set}`, expected one of `untrusted`, `on-failure`, "
                "`on-request`, `granular`, `never`"
            ),
        ),
        (
            "--config",
            "set sandbox_mode read-only workspace-write danger-full-access",
            (
                "Error loading config.toml: unknown variant `{set}`, expected one of `read-only`, `workspace-write`, "
                "`danger-full-access`"
            ),
        ),
    ),
    repository=(
        "exec",
        "--skip-git-repo-check --dangerously-bypass-approvals-and-sandbox",
        "--cd",
        "Not inside a trusted directory and --skip-git-repo-check was not specified.",
    ),
    no_prompt="No prompt provided via stdin.",
    resuming=ResumeOptions(
        command="exec resume",
        unless="--last",
        missing="Error: thread/resume: thread/resume failed: no rollout found for thread id {value} (code -32600)",
    ),
)
_GEMINI_COMMAND_LINE = CommandLine(
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
        (
            "--include-directories",
            "existing",
            "[WARN] Skipping unreadable directory: {value} (Directory does not exist: {path})",
        ),
        (
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
_PI_COMMAND_LINE = CommandLine(
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
        (
            "--extension",
            "existing",
            'Error: Failed to load extension "{path}": Extension path does not exist: {path}',
        ),
        ("--export", "existing", "Error: File not found: {value}"),
    ),
    resuming=ResumeOptions(
        options=("--session", "--fork"),
        unless="--no-session",
        prefix=True,
        missing="No session found matching '{value}'",
        odd="No session found matching '{value}'",
    ),
)
_PI_1_COMMAND_LINE = replace(
    _PI_COMMAND_LINE,
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
        **_PI_COMMAND_LINE.errors,
        "choice": 'Error: Invalid mode "{value}". Valid values: text, json, rpc',
    },
    conflicts=(
        *_PI_COMMAND_LINE.conflicts,
        (
            "--provider",
            "--model",
            "Error: --provider requires --model (for example: --provider NAME --model <pattern>)",
        ),
    ),
)
"""That of 1.6.0."""
_OPENCODE_ERROR_PREFIX = "\x1b[91m\x1b[1mError: \x1b[0m"
_OPENCODE_COMMAND_LINE = CommandLine(
    options={
        "": "-h --help; -v --version",
        "run": """
        -h --help; -v --version; --print-logs; --log-level [value] DEBUG INFO WARN ERROR; --pure; --command [value];
        -c --continue; -s --session [value]; --fork; --share; -m --model [value]; --agent [value];
        --format [value] default json; -f --file [value...]; --title [value]; --attach [value]; -p --password [value];
        -u --username [value]; --dir [value]; --port [value]; --variant [value]; --thinking; -i --interactive; --auto
        """,
    },
    commands={"": {"run": "run"}},
    foreign={
        "": "completion acp mcp attach debug providers auth agent upgrade uninstall serve web models stats export "
        "import github pr session plugin plug db"
    },
    usage={"": "opencode [project]", "run": "opencode run [message..]\n\nrun opencode with a message"},
    errors=dict.fromkeys(("unknown", "choice"), "{usage}"),
    conflicts=(
        ("run --fork", "--continue --session", f"{_OPENCODE_ERROR_PREFIX}--fork requires --continue or --session"),
    ),
    formats=(
        ("run --format=json", "run", ""),
        ("run", "run", "text"),
        ("", "", "opencode needs a terminal: the fake has `opencode run` alone"),
    ),
    errors_to=("stderr", f"{_OPENCODE_ERROR_PREFIX}{{text}}"),
    values=(
        ("--dir", "existing", f"{_OPENCODE_ERROR_PREFIX}Failed to change directory to {{value}}"),
        ("--file", "existing", f"{_OPENCODE_ERROR_PREFIX}File not found: {{value}}"),
    ),
    no_prompt=f"{_OPENCODE_ERROR_PREFIX}You must provide a message or a command",
    helps_on_stderr=True,
    resuming=ResumeOptions(
        options=("--session",),
        missing=f"{_OPENCODE_ERROR_PREFIX}Session not found",
        odd=f"{_OPENCODE_ERROR_PREFIX}Session not found",
    ),
)

_CLAUDE_HOOK_FIELDS = {
    "type": "system",
    "hook_id": "hook_1",
    "hook_name": "PreToolUse:Bash",
    "hook_event": "PreToolUse",
}
_CLAUDE_HOOK_OUTPUT_FIELDS = {"output": "", "stdout": "", "stderr": ""}
_CLAUDE_STATUS_FIELDS = {"type": "system", "subtype": "status"}
_CLAUDE_API_RETRY_FIELDS = {
    "attempt": 1,
    "max_retries": 10,
    "retry_delay_ms": 600,
    "error_status": 500,
    "error": "server_error",
}
_CLAUDE_READY_MADE_LINES: dict[str, dict[str, Any]] = {
    "keep_alive": {"type": "keep_alive"},
    "rate_limit": {"type": "rate_limit_event", "rate_limit_info": {"status": "allowed", "rateLimitType": "five_hour"}},
    "api_retry": {"type": "system", "subtype": "api_retry", **_CLAUDE_API_RETRY_FIELDS},
    "requesting": {**_CLAUDE_STATUS_FIELDS, "status": "requesting"},
    "compacting": {**_CLAUDE_STATUS_FIELDS, "status": "compacting"},
    "compacted": {**_CLAUDE_STATUS_FIELDS, "status": None, "compact_result": "success"},
    "compact_boundary": {
        "type": "system",
        "subtype": "compact_boundary",
        "compact_metadata": {"trigger": "auto", "pre_tokens": 95294, "post_tokens": 3242},
    },
    "hook_started": {**_CLAUDE_HOOK_FIELDS, "subtype": "hook_started"},
    "hook_progress": {**_CLAUDE_HOOK_FIELDS, "subtype": "hook_progress", **_CLAUDE_HOOK_OUTPUT_FIELDS},
    "hook_response": {
        **_CLAUDE_HOOK_FIELDS,
        "subtype": "hook_response",
        **_CLAUDE_HOOK_OUTPUT_FIELDS,
        "exit_code": 0,
        "outcome": "success",
    },
}
"""The lines of claude beside its turns; docs/explanation/protocol-claude.md says what each of them means."""

_CLAUDE_SIGNALS = {
    "TERM": SignalReaction(143, kills_tools=True, last_words="tools"),
    "INT": SignalReaction(0, kills_tools=True, last_words="turn"),
    "HUP": SignalReaction(129, kills_tools=True, last_words="tools"),
}
"""Measured with 2.1.332. A second signal changes nothing."""
_PI_SIGNALS = {"TERM": SignalReaction(143, kills_tools=True), "HUP": SignalReaction(129, kills_tools=True)}
"""Measured with 1.6.0 and 0.73.1. It dies of INT, and its tool lives on."""
_CODEX_EXEC_SIGNALS = {"INT": SignalReaction(1, kills_tools=True)}
"""Measured with 0.171.0, the native program. It dies of TERM and HUP, and its tool lives on."""
_CODEX_APP_SERVER_SIGNALS = {"TERM": SignalReaction(0, kills_tools=True)}
"""Measured with 0.171.0, the native program. It dies of INT and HUP, and its tool lives on."""
_GEMINI_SIGNALS = dict.fromkeys(("TERM", "INT", "HUP"), SignalReaction(None))
"""Measured with 0.61.0. A signal to the launcher has no effect, and a second one neither."""
_CLAUDE_STDIN_WARNING = (
    "Warning: no stdin data received in 3s, proceeding without it. If piping from a slow command, redirect stdin "
    "explicitly: < /dev/null to skip, or wait longer."
)

_PI_0_73 = Dialect(
    name="pi",
    command="pi",
    command_line=_PI_COMMAND_LINE,
    encoder=f"{_PACKAGE_OF_ENCODERS}.pi",
    encoders={"rpc": (f"{_PACKAGE_OF_ENCODERS}.pi", f"{_PACKAGE_OF_ENCODERS}.pi_rpc")},
    decoders={"json": f"{_PACKAGE_OF_DECODERS}._pi:PiDecoder"},
    session_protocols={"rpc": f"{_PACKAGE_OF_DECODERS}._pi_session_protocol:PiSessionProtocol"},
    options={"json": ("--mode", "json", "-p"), "rpc": ("--mode", "rpc")},
    identifying_words={"rpc": "rpc"},
    handshakes=(),
    identifying_output=r'"assistantMessageEvent":\{[^\n]*"partial":|"content":\[\],[^\n]*"stopReason":"stop"',
    probes={"--version": "0.73.1", "-v": "0.73.1"},
    tells_on_stderr=True,
    steps={
        "json": ("begin", "delta", "think", "tool", "tool_done", "event"),
        "rpc": ("delta", "think", "tool", "tool_done", "event", "ask"),
    },
    stop_reasons=("stop", "length", "toolUse", "error", "aborted"),
    signals={"json": _PI_SIGNALS, "rpc": _PI_SIGNALS},
    stdin=StdinReading(),
)
"""The last version of the package `@mariozechner/pi-coding-agent`."""
_PI = replace(
    _PI_0_73,
    command_line=_PI_1_COMMAND_LINE,
    encoder_parts=(f"{_PACKAGE_OF_ENCODERS}.pi",),
    encoder=f"{_PACKAGE_OF_ENCODERS}.pi_1",
    encoders={"rpc": tuple(f"{_PACKAGE_OF_ENCODERS}.{name}" for name in ("pi", "pi_rpc", "pi_1", "pi_1_rpc"))},
    probes={"--version": "1.6.0", "-v": "1.6.0"},
    tells_on_stderr=False,
    older=(_PI_0_73,),
    identifying_output="",
)
"""The package `@earendil-works/pi-coding-agent`."""

_ALL_DIALECTS = (
    Dialect(
        name="raw",
        encoder=f"{_PACKAGE_OF_ENCODERS}.raw",
        decoders={"text": f"{_PACKAGE_OF_DECODERS}._raw:RawDecoder"},
        nameless=("text",),
    ),
    Dialect(
        name="claude",
        command="claude",
        command_line=_CLAUDE_COMMAND_LINE,
        encoder_parts=_CLAUDE_ENCODER_MODULES[:-1],
        encoder=_CLAUDE_ENCODER_MODULES[-1],
        encoders={"session": _CLAUDE_SESSION_ENCODER_MODULES},
        task_encoders={"print": (*_CLAUDE_SESSION_ENCODER_MODULES, f"{_PACKAGE_OF_CLAUDE}.background")},
        decoders={"print": f"{_PACKAGE_OF_DECODERS}._claude:ClaudePrintDecoder"},
        session_protocols={"session": f"{_PACKAGE_OF_DECODERS}._claude_session_protocol:ClaudeSessionProtocol"},
        options={
            "print": ("-p", "--output-format", "stream-json", "--verbose"),
            "session": ("--output-format", "stream-json", "--verbose", "--input-format", "stream-json"),
        },
        identifying_words={"session": "--input-format stream-json"},
        partials=("--include-partial-messages",),
        states={"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1"},
        probes={
            "--version": "2.1.332 (Claude Code)",
            "-v": "2.1.332 (Claude Code)",
            "auth status": _CLAUDE_AUTH_STATUS_OUTPUT,
            "auth status --json": _CLAUDE_AUTH_STATUS_OUTPUT,
        },
        steps={"print": ("begin", *_CLAUDE_STEP_NAMES, "request"), "session": (*_CLAUDE_STEP_NAMES, "ask", "request")},
        lines=_CLAUDE_READY_MADE_LINES,
        keys=(
            "parent",
            "more",
            "allowed_by",
            "refused",
            "hook",
            "request_fields",
            "for",
            "host_tools",
            "receipt",
            "signal",
            "continues",
            "modes",
        ),
        stop_reasons=("end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal"),
        subtypes=(
            *("success", "error_during_execution", "error_max_turns", "error_max_budget_usd"),
            "error_max_structured_output_retries",
        ),
        signals={"print": _CLAUDE_SIGNALS, "session": _CLAUDE_SIGNALS},
        stdin=StdinReading(patience=3.0, warning=_CLAUDE_STDIN_WARNING),
        silence=180.0,
    ),
    _PI,
    Dialect(
        name="codex",
        command="codex",
        command_line=_CODEX_COMMAND_LINE,
        encoder=f"{_PACKAGE_OF_ENCODERS}.codex",
        encoders={"app-server": (f"{_PACKAGE_OF_ENCODERS}.json_rpc", f"{_PACKAGE_OF_ENCODERS}.codex_app_server")},
        decoders={"exec": f"{_PACKAGE_OF_DECODERS}._codex:CodexDecoder"},
        session_protocols={"app-server": f"{_PACKAGE_OF_DECODERS}._codex_session_protocol:CodexSessionProtocol"},
        nameless=("exec",),
        options={"exec": ("exec", "--json", "--skip-git-repo-check"), "app-server": ("app-server",)},
        identifying_words={"app-server": "app-server"},
        probes={"--version": "codex-cli 0.171.0", "-V": "codex-cli 0.171.0"},
        steps={
            "exec": ("begin", "notice", "think", "plan", "tool", "tool_done", "event"),
            "app-server": ("delta", "think", "plan", "tool", "tool_done", "event", "ask", "request"),
        },
        keys=("offers", "continues"),
        signals={"exec": _CODEX_EXEC_SIGNALS, "app-server": _CODEX_APP_SERVER_SIGNALS},
        stdin=StdinReading(
            notice="Reading additional input from stdin...",
            prompt_notice="Reading prompt from stdin...",
            resumed=False,
        ),
    ),
    Dialect(
        name="gemini",
        command="gemini",
        command_line=_GEMINI_COMMAND_LINE,
        encoder=f"{_PACKAGE_OF_ENCODERS}.gemini",
        decoders={
            "text": f"{_PACKAGE_OF_DECODERS}._raw:RawDecoder",
            "json": f"{_PACKAGE_OF_DECODERS}._gemini:GeminiJsonDecoder",
            "stream": f"{_PACKAGE_OF_DECODERS}._gemini:GeminiStreamDecoder",
        },
        nameless=("text",),
        model=_GEMINI_MODEL_NAME,
        options={
            "text": (*_GEMINI_COMMON_OPTIONS, "text"),
            "json": (*_GEMINI_COMMON_OPTIONS, "json"),
            "stream": (*_GEMINI_COMMON_OPTIONS, "stream-json"),
        },
        identifying_words={"stream": "stream-json", "json": "json"},
        probes={"--version": "0.61.0", "-v": "0.61.0"},
        steps={"text": (), "json": (), "stream": ("begin", "delta", "tool", "tool_done", "event")},
        signals=dict.fromkeys(("text", "json", "stream"), _GEMINI_SIGNALS),
        stdin=StdinReading(patience=0.5),
    ),
    Dialect(
        name="opencode",
        command="opencode",
        command_line=_OPENCODE_COMMAND_LINE,
        encoder=f"{_PACKAGE_OF_ENCODERS}.opencode",
        decoders={"run": f"{_PACKAGE_OF_DECODERS}._opencode:OpencodeDecoder"},
        nameless=("run",),
        options={"run": ("run", "--format", "json", "--thinking")},
        probes={"--version": "1.18.33", "-v": "1.18.33"},
        steps={"run": ("begin", "think", "tool", "tool_done", "event")},
        stdin=StdinReading(),
        silence=180.0,
    ),
    Dialect(
        name="acp",
        encoder_parts=(f"{_PACKAGE_OF_ENCODERS}.json_rpc",),
        encoder=f"{_PACKAGE_OF_ENCODERS}.acp",
        session_protocols={"session": f"{_PACKAGE_OF_DECODERS}._acp:AcpSessionProtocol"},
        nameless=("session",),
        steps={"session": ("delta", "think", "plan", "tool", "tool_done", "event", "ask", "request")},
        keys=("kind", "locations", "status", "version", "history", "modes", "options", "offers", "continues"),
        stop_reasons=("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"),
    ),
)

DIALECTS: Mapping[str, Dialect] = {dialect.name: dialect for dialect in _ALL_DIALECTS}
"""Each by its name."""
