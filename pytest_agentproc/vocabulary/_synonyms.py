"""Owns the words that people bring from elsewhere, and what to write here: one table by meaning for each kind of word.

A meaning wins over a near spelling: `timeout` is near to `hook_timeout`, and means another limit. The words come from
shells, subprocess, Docker, systemd, Kubernetes, pytest, Jest, Playwright and the agent CLIs. Knows no table of the
language. A test holds that no word here is a name there, and that each remedy names one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_agentproc.vocabulary._signals import SIGNAL_NUMBER_BY_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable

_HOW_TO_IGNORE = 'write "- when: {signal: TERM}", and below it "do: []", which ignores the signal'
_HOW_TO_CHANGE_SCRIPT = (
    'for another script at each start of the agent write the key "scripts": [[{"exit": 1}], [{"answer": "done"}]]'
)
_HOW_TO_LIMIT = "inactivity_timeout limits silence, max_runtime a whole run, prompt_timeout a turn of a session"
_NO_COMMAND = "a scenario starts no command: every process is a fake, its script says what it does"
_COMMAND_WORDS = "args argv bash cmd command exec executable program run shell system"

_WORDS_BY_REMEDY: dict[str, dict[str, str]] = {
    "step": {
        _NO_COMMAND: _COMMAND_WORDS,
        "write silence: T for a time, wait_for: eof or wait_for: signal for an event": "linger",
        "write silence": (
            "delay idle pause sleep wait quiet timeout slow slow_start startup_delay nothing noop no_op pass"
        ),
        "write silence: for ever": (
            "hang hangs block blocks freeze stall stuck infinite forever never deadlock deadlocked livelock lock"
        ),
        "write write_file for a file, say for output": "write file save create touch file_write create_file",
        "write say": "echo output print stdout message text log speak assistant send",
        "write answer, which completes the turn": "reply respond response complete completion final finish success",
        "write delta": "chunk partial stream token tokens piece",
        "write think": "reasoning thinking thought reason",
        "write raw": (
            "bytes binary garbage json line lines junk invalid malformed half half_line cut truncate truncated newline"
        ),
        "write raw with to: stderr": (
            "stderr err stderr_line traceback backtrace stacktrace stack_trace debug warn warning"
        ),
        "write exit: 1 for a bad exit code, or result: {text: TEXT, is_error: true} for an error result": (
            "error fail fails failure failed raise raises throw throws exception"
        ),
        "write exit": "exit_code exitcode code return return_code returncode quit end status",
        "write die": "crash crashes crashed panic segfault abort core_dump coredump",
        "write die, or kill for a child": "signal killed terminate",
        "write die: KILL for its own death, as when the memory of the machine runs out": (
            "oom out_of_memory oom_kill oom_killer oomkilled kill_9 kill_self self_kill suicide"
        ),
        'write "- when: {signal: INT}" for what it does at Ctrl-C, or die: INT for its own death': (
            "ctrl_c ctrlc interrupt interrupted keyboard_interrupt keyboardinterrupt cancel cancelled canceled"
        ),
        "write when": "catch on react handler handle",
        _HOW_TO_IGNORE: (
            "ignore ignores ignore_signal ignore_signals ignores_signals ignore_term ignore_sigterm mask trap nohup"
        ),
        _HOW_TO_CHANGE_SCRIPT: "retry retries again attempt attempts first second then restart flaky",
        "write drip: {say: TEXT, every: 1s} to print again and again; write other steps once for each time": (
            "loop repeat repeats every each for foreach times while interval tick heartbeat ping"
        ),
        "write tool": "tool_use tool_call call function function_call use_tool toolcall",
        "write tool_done": "tool_result tool_output tool_end tool_response",
        "write wait_for": "await read expect recv receive input until waitfor eof",
        "write spawn": "fork child children subprocess process popen background daemon detach setsid server "
        "mcp mcp_server helper orphan orphans grandchild zombie leak",
        "write burn_cpu": "busy cpu spin compute",
        "write meanwhile": "parallel concurrently concurrent async simultaneously also",
        "write ask": "can_use_tool hook permission request_permission approval approve confirm",
        "write begin": "init start system turn_start",
        "write event: api_retry (claude)": (
            "rate_limit ratelimit rate_limited overload overloaded api_error throttle throttled too_many_requests "
            "429 500 503 529"
        ),
        "write wait_for: prompt 1 for the first prompt of a session": "prompt next_prompt",
        "it belongs to a when: write it in the same item": "do",
    },
    "limit": {
        _HOW_TO_LIMIT: "timeout time_out timeouts limit time_limit deadline ttl wait_timeout http_timeout api_timeout",
        "write max_runtime": "duration max_duration total_timeout run_timeout runtime wall_timeout wall_time max_time "
        "hard_timeout execution_timeout overall_timeout global_timeout activedeadlineseconds runtimemaxsec "
        "timelimit wall_clock wallclock overall budget",
        "write inactivity_timeout": "idle idle_timeout silence silence_timeout quiet_timeout output_timeout "
        "read_timeout no_output_timeout stdout_timeout inactivity first_byte_timeout first_output_timeout "
        "silence_limit max_silence max_idle idle_limit",
        "write internal_tool_timeout": "tool_timeout tool_limit command_timeout bash_timeout",
        "write progress_timeout": "stall_timeout stalled_timeout event_timeout heartbeat_timeout watchdog watchdogsec",
        "write prompt_timeout": "turn_timeout response_timeout request_timeout answer_timeout",
        "write permission_timeout": "approval_timeout ask_timeout question_timeout",
        "write handshake_timeout": "startup_timeout start_timeout connect_timeout init_timeout initialize_timeout "
        "launch_timeout ready_timeout timeoutstartsec",
        "write kill_grace, which is from TERM to KILL": "grace grace_period kill_after kill_timeout kill_delay "
        "term_timeout terminate_timeout sigterm_timeout sigkill_timeout stop_timeout stop_grace_period timeoutstopsec "
        "termination_grace_period terminationgraceperiodseconds force_kill_after force_kill_after_delay killsignal "
        "kill_wait sigkill_delay sigkill_after term_grace sigterm_grace",
        "write linger_grace": "linger linger_timeout exit_timeout exit_grace",
        "write close_grace": "shutdown_timeout shutdown_grace close_timeout",
        "write cancel_grace": "cancel_timeout interrupt_timeout abort_timeout",
        "write restart_backoff": "backoff retry retries max_retries restart restarts restart_delay restartsec",
        "write max_transcript_bytes, or max_line_bytes for one line": "max_output max_buffer maxbuffer output_limit "
        "buffer buffer_size max_bytes memory",
        "write host_tools": "tools allowed_tools allowedtools client_tools",
        "no limit counts turns; max_runtime limits a whole run": "max_turns max_steps max_iterations turn_limit",
        "write containment": "cgroup isolation sandbox process_group setsid killpg kill_mode killmode",
    },
    "expect key": {
        "write exit_code for the supervisor's own code, agent_status for the agent's": (
            "exit exitcode exit_status code returncode return_code rc exits"
        ),
        "write text, the final message; transcript has all messages": (
            "result answer output stdout message messages response final reply say says content "
            "result_text message_text"
        ),
        "write text: {contains: TEXT} for a part of the final message, text: {matches: PATTERN} for a pattern": (
            "contains matches stdout_contains output_contains text_contains text_matches"
        ),
        "write stderr_tail": "stderr err",
        "write agent_status: {signal: KILL} for how the agent ended, signals: [{TERM: 10s}] for what it got": (
            "killed kill killed_by terminated terminate signal died dies signaled sigterm sigkill term "
            "signal_sent signals_sent term_sent kill_sent"
        ),
        "write elapsed": "duration time runtime took seconds elapsed_time run_time latency wall_time "
        "within took_at_most duration_max max_duration max_elapsed",
        "write outcome: inactive if a limit on silence ran out, or elapsed: 10s for a time": (
            "timeout timed_out timedout times_out hangs hung"
        ),
        "write outcome: completed": "success succeeds succeeded ok passed passes complete completed finished",
        "write outcome": "failed fails failure state ended result_type end",
        "write error": "exception errors raises message_of_error error_message reason cause",
        "write leaks: [] for none; processes: {ID: ...} has checks on one process": (
            "children child descendants orphans orphan leaked leak leftovers leftover zombies left no_leaks "
            "no_orphans no_zombies no_children no_leftovers no_processes"
        ),
        "write received: {argv: [...], env: {NAME: TEXT}, cwd: TEXT, stdin: TEXT}": (
            "argv args arguments command env environment cwd stdin input given prompt called_with"
        ),
        "write spawns": "restarts starts attempts retries calls call_count invocations "
        "retry_count retries_made restart_count called_once times_called",
        "write alive_at_once": "concurrency parallel max_agents",
        "write usage": "tokens cost token_count input_tokens output_tokens",
        "write artifacts": "files file logs artifact",
        "write asked": "permissions permission questions question approvals hooks",
        "write pipes_left": "fds pipes open_files file_descriptors",
        "write noise": "unknown_lines garbage junk",
        "write warnings": "warning warns logged",
    },
    "process check": {
        "write status: {signal: KILL} for a signal, or status: 0 for an exit code": (
            "exit exit_code exitcode code returncode agent_status killed killed_by signal ended outcome"
        ),
        "write gone_at": "gone died died_at dead ended_at end exited",
        "write alive_at": "alive running started",
    },
    "received check": {
        "write argv": "args arguments command flags options",
        "write env": "environment variables",
        "write cwd": "dir directory folder workdir working_directory",
        "write stdin": "input text",
    },
    "text check": {
        "write matches": "regex regexp re pattern match search glob like",
        "write the text itself, without a key; contains is for a part": "exact equals equal eq is text value",
        "write contains": "contain includes include has in substring part starts_with startswith ends_with endswith",
    },
    "outcome": {
        "write completed": "success successful succeeded ok done complete finished passed pass normal exited answered",
        "write failed": "error errored failure fail nonzero bad error_result is_error "
        "exception rate_limited api_error auth_error max_turns budget_exceeded",
        "write incomplete for a run that ended without a result, agent_lost for a prompt of a session": (
            "crashed crash died dead killed signaled signalled signal segfault lost aborted no_result partial "
            "oom oomkilled out_of_memory segv sigsegv sigkill core_dumped no_answer partial_result"
        ),
        "write inactive for silence, overran for max_runtime, timed_out for a turn of a session": (
            "timeout time_out timedout expired deadline deadline_exceeded timeouted"
        ),
        "write inactive": "idle silent hang hangs hung stuck inactivity frozen",
        "write stalled": "stall no_progress",
        "write cancelled for a turn of a session, stopped for a run": "canceled interrupted interrupt abort",
        "write stopped": "terminated closed shutdown stop abandoned",
        "write spawn_failed": "not_found missing enoent start_failed launch_failed cannot_spawn command_not_found",
        "write protocol_error": "malformed invalid parse_error garbage bad_json",
    },
    "report field": {
        "give text": "result answer output stdout message response final content",
        "give agent_status, the exit code of the agent, or minus the number of a signal": (
            "exit code exitcode exit_status returncode return_code rc status"
        ),
        "give elapsed": "duration time runtime took seconds",
        "give stderr_tail": "stderr err",
        "give outcome": "state success ok failed",
        "give error": "exception reason",
        "give usage": "tokens cost",
    },
    "level": {
        "write must": "error required critical blocker high shall fatal",
        "write should": "warning warn recommended optional medium may could",
        "write info": "note debug information low hint none",
    },
    "drive item": {
        "write prompt": "send say ask message input user type text query",
        "write cancel": "interrupt abort escape esc ctrl_c sigint",
        "write wait": "sleep pause delay silence",
        "write wait_for": "await until expect",
        "write stop": "kill terminate restart end",
        "write close": "exit quit disconnect eof",
    },
    "file key": {
        _NO_COMMAND: _COMMAND_WORDS,
        "write scenario, the claim in one sentence": "name title description claim test summary it id",
        "write script": "steps step fake play behavior behaviour actions given",
        "write expect": "then assert asserts assertions check checks verify expected expectations expects want",
        f"write policy; {_HOW_TO_LIMIT}": "timeout timeouts limits limit config settings options time_limit",
        "write covers": "tags rule rules labels marks",
        "write level": "severity priority importance",
        "write source": "bug url link issue report ref reference ticket",
        "write drive": "caller user conversation prompts input turns",
        "write agent": "dialect cli tool type kind backend provider",
        f"it is a step, and belongs under script: {_HOW_TO_IGNORE}": (
            "on ignore ignores trap signals ignore_signals ignores_signals sigterm term sigint int"
        ),
        _HOW_TO_CHANGE_SCRIPT: "retry retries attempts attempt starts runs",
    },
    "agent key": {
        _NO_COMMAND: _COMMAND_WORDS,
        "write dialect, or model for the name of its model": "name id",
        "write dialect": "type kind format protocol cli agent provider",
        f"it is a step, and belongs under script: {_HOW_TO_IGNORE}": (
            "on ignore ignores trap signals ignore_signals ignores_signals sigterm term sigint int"
        ),
        "write terminal": "tty pty isatty",
        "write cannot_spawn": "missing not_found start_error spawn_error",
    },
    "spawn key": {
        _NO_COMMAND: _COMMAND_WORDS,
        "write id": "name",
        "write ignores_signals: true": "ignore ignores trap ignore_signals ignore_signal nohup ignore_term",
        "write inherits: [stdout]": "stdout stderr stdin streams pipes inherit stdio",
        "write how": "kind type mode detached detach daemon setsid own_group new_session background",
        "write for": "duration lifetime lives time sleep silence timeout",
        "write script": "steps do then",
    },
    "spawn kind": {
        "write new_session": "setsid session start_new_session",
        "write own_group": "setpgid setpgrp group process_group pgid own_process_group",
        "write daemon": "background nohup detached detach disown daemonize",
        "write same_group": "child normal plain fork default",
        "write double_fork": "doublefork orphan reparent",
    },
    "spawn error": {
        "write not_found": "missing enoent no_such_file command_not_found does_not_exist",
        "write not_executable": "permission permission_denied eacces denied no_permission",
        "write no_interpreter": "shebang interpreter",
        "write wrong_format": "enoexec exec_format_error architecture wrong_arch",
        "write no_memory": "enomem oom memory out_of_memory",
        "write no_descriptors": "emfile too_many_files fds descriptors",
    },
    "verdict": {
        "not applicable": "n/a na n_a skipped skip inapplicable",
        "passed": "pass ok green success",
        "failed": "fail red failure",
        "undecided": "unknown unsure inconclusive",
        "known": "xfail known_failure expected_failure baseline",
        "not exercised": "not_run unreached not_reached",
        "crashed": "crash exception traceback",
    },
    "note": {
        "a turn is one prompt of a session and the agent's answer to it. expect has turns: [{outcome: ...}], and a "
        "drive has wait_for: turn 1 and cancel: {turn: 1}": "turn",
        "fakes run on Linux only. check, explain, import, list, new and schema run on any platform": (
            "macos mac osx darwin windows win32 wsl wsl2 freebsd platform platforms"
        ),
        "T5 would say that the agents go when the supervisor is killed. It can keep that only with a process beside "
        "it, so no scenario asks for it": "t5",
    },
}
"""By kind of word: what to write, with the words of others that mean it."""


_UNIT_IN_NAME = re.compile(r"_(s|secs?|seconds?|ms|millis|milliseconds?|mins?|minutes?)$")
"""The unit that some tools put into the name of a time; here the value has it."""


def _normalize_word(word: str) -> str:
    return re.sub(r"[-+_\s]+", "_", word.strip().lower())


def _list_signal_steps() -> dict[str, str]:
    """Give what to write for the name of a signal that stands where a step does."""
    found = {}
    for name in SIGNAL_NUMBER_BY_NAME:
        ignore = "" if name == "KILL" else f', or to ignore it "- when: {{signal: {name}}}", and below it "do: []"'
        found[f"sig{name.lower()}"] = found[name.lower()] = f"write die: {name} for its own death{ignore}"
    del found["kill"]  # it is a step
    return found


REMEDY_BY_KIND_AND_WORD: dict[str, dict[str, str]] = {
    kind: {word: remedy for remedy, words in groups.items() for word in words.split()}
    for kind, groups in _WORDS_BY_REMEDY.items()
}
REMEDY_BY_KIND_AND_WORD["step"] = {**_list_signal_steps(), **REMEDY_BY_KIND_AND_WORD["step"]}
"""By kind of word, such as `step` or `limit`: the remedy for each word of others."""


def find_remedy(kind: str, word: object) -> str:
    """Say what to write in place of a word of others; "" if the table has no such word.

    Args:
        kind: what the word was meant as, such as `step` or `limit`.
        word: it, in any case, with `-`, `_`, `+` or blanks, and with a unit at its end or without one.
    """
    remedies, normal = REMEDY_BY_KIND_AND_WORD.get(kind, {}), _normalize_word(str(word))
    return remedies.get(normal) or remedies.get(_UNIT_IN_NAME.sub("", normal), "")


def list_remedies(word: str, kinds: Iterable[str] = tuple(REMEDY_BY_KIND_AND_WORD)) -> dict[str, str]:
    """Give what a word of others means, by the kind that it may be meant as.

    Args:
        word: it, as `find_remedy` takes it.
        kinds: the kinds to look at.
    """
    return {kind: remedy for kind in kinds if (remedy := find_remedy(kind, word))}
