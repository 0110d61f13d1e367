"""The rules of supervisors, append-only: a name keeps its meaning for ever. Knows no scenario.

`agentproc explain RULE` and the reference page of a rule print what stands here. Its scenarios and defects are derived.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule for supervisors.

    Args:
        name: its letter and number.
        demands: the rule itself, in one clause without a full stop.
        why: what goes wrong without it, in one to three sentences.
        report: the address of a public bug report about it; empty: none is known.
        reference: how the reference supervisor keeps it.
        open: what the rule does not decide, or what its scenarios do not try; empty: nothing.
    """

    name: str
    demands: str
    why: str = ""
    report: str = ""
    reference: str = ""
    open: str = ""


_ALL_RULES = (
    Rule(
        name="A1",
        demands="any byte is activity; a run that is silent for inactivity_timeout ends as inactive",
        why=(
            "A limit on the whole duration kills an agent that works slowly. A timer that only full lines reset kills "
            "an agent in the middle of a long line. An agent that hangs in silence must still end."
        ),
        report="https://github.com/openagents-org/openagents/pull/686",
        reference=(
            "It counts every byte of both streams, also of a line that has no end yet. The limit is 120 s, for claude "
            "180 s. At the limit it terminates the whole tree, and the error says how long the agent was silent and "
            "after how many bytes. In a session the limit is off unless the caller sets it; there it cancels the turn "
            "and does not end the agent."
        ),
        open="The scenarios use the supervisor's own number. A supervisor without a limit is not asked.",
    ),
    Rule(
        name="A2",
        demands="max_runtime caps a run whatever its activity",
        why=(
            "An agent that prints a status line every minute never falls silent. Without a cap it runs for days and "
            "costs money."
        ),
        report="https://github.com/multica-ai/multica/pull/5712",
        reference=(
            "The cap is off unless the caller sets it. It counts from the start of the run, and the run ends as "
            "`overran`. In a session it counts from the delivery of the prompt; it cancels the turn, and the agent "
            "lives."
        ),
        open="A supervisor without a cap is not asked: these checks do not apply to it.",
    ),
    Rule(
        name="A3",
        demands="one watchdog holds all deadlines; at the same instant the gentler one wins",
        why="Two timers in two places race. The agent is signalled twice, or the report names the wrong limit.",
        report="https://github.com/iOfficeAI/AionUi/issues/1708",
        reference=(
            "One watchdog holds every deadline of a run or a turn. If several run out at one instant, the order is "
            "progress, prompt, silence, longest runtime. One limit is reported, and the agent is ended or cancelled "
            "once."
        ),
        open="Which of two limits counts at one instant is a choice of the reference supervisor (level `info`).",
    ),
    Rule(
        name="A4",
        demands="exit beats the timer: at one instant output first, then exit, then deadlines",
        why=(
            "An agent that finishes just in time is reported as a timeout, and its answer is thrown away. A supervisor "
            "that was busy and looks late must not blame the agent for that."
        ),
        report="https://github.com/anthropics/claude-code/issues/92264",
        reference=(
            "When it wakes up, it reads all output that is there, then looks for the exit, and only then at the "
            "limits. So an answer that came in time counts, even if the event loop was blocked until after the limit."
        ),
        open="Ties exist in virtual time only. In real time no check depends on one instant.",
    ),
    Rule(
        name="A5",
        demands="a closed stdout or stderr is neither activity nor exit",
        why=(
            "Some supervisors treat the end of stdout as the end of the agent. Then they wait without a limit for a "
            "process that lives on, or poll the closed stream and burn a core."
        ),
        report="https://github.com/majiayu000/harness/issues/1109",
        reference=(
            "The limit on silence runs on from the last byte. The closed stream is not read again. The exit is taken "
            "from the process."
        ),
    ),
    Rule(
        name="A6",
        demands="while the agent runs its own tools, or compacts, the limit on silence is internal_tool_timeout",
        why=(
            "An agent is silent while its compiler, its tests or its sub-agent run for minutes. The ordinary limit "
            "kills it in the middle of this work."
        ),
        report="https://github.com/lobehub/lobehub/pull/18575",
        reference=(
            "It follows each tool by its id, from the event that starts it to the event that ends it. While one runs, "
            "the limit is 600 s. A background sub-agent of claude counts as a tool until its notification. So does a "
            "compaction that the agent announces. The words of a sub-agent change nothing. After the last tool the "
            "ordinary limit holds again."
        ),
        open=(
            "A supervisor with one long limit for everything also passes the scenarios that need a long limit. The "
            "scenarios that ask for the short limit after a tool have the level `should`."
        ),
    ),
    Rule(
        name="A7",
        demands="a message that asks for a host tool ends the run as tool_use",
        why=(
            "A host tool is run by the program that supervises, not by the agent. If the supervisor reads on, the "
            "agent runs the tool itself, or waits until a timeout for a result that never comes."
        ),
        report="https://github.com/nshkrdotcom/claude_agent_sdk/pull/6",
        reference=(
            "`host_tools` names the tools of the host; by default there are none. The whole message is read first. "
            "Then a run ends as `tool_use` and the agent is terminated; in a session the turn ends and the agent "
            "lives. A tool that a sub-agent asks for is never a host tool."
        ),
        open="A supervisor that lets the agent run all tools has no host tools; then these checks do not apply.",
    ),
    Rule(
        name="A8",
        demands="bytes without progress for progress_timeout end a run as stalled",
        why="Heartbeats, spinners and log lines reset a limit on silence for ever, although the work stands still.",
        report="https://github.com/multica-ai/multica/pull/5712",
        reference=(
            "Progress is an event of the dialect that belongs to the work: a message or a piece of it, a tool that "
            "starts or ends, the words of a sub-agent. Noise, stderr, status lines and half a line are activity, but "
            "no progress. The limit is off unless the caller sets it. In a session it cancels the turn."
        ),
        open="That a run which only repeats its request ends is a `must`; when it ends is a `should`.",
    ),
    Rule(
        name="A9",
        demands="the one-number form of a limit means silence, never duration",
        why=(
            "`timeout=120` that means the whole run kills an agent that works for three minutes and prints all the "
            "time."
        ),
        report="https://github.com/akashgit/remote-factory/issues/525",
        reference="`run_once(argv, timeout=60)` limits silence to 60 s, and limits nothing else.",
        open="A supervisor that has no such short form is not asked.",
    ),
    Rule(
        name="B1",
        demands="a background turn never appears in a prompt's turn or completes it, however late it comes",
        why=(
            "claude starts a turn by itself when a background command ends. If its text lands in the next prompt, the "
            "user reads the answer to another question, and from then on each answer comes one prompt late."
        ),
        report="https://github.com/agentclientprotocol/claude-agent-acp/pull/353",
        reference=(
            "It puts an id on every prompt. claude repeats the id in the turn that answers it, and a background turn "
            "has none. So the background turn has a result of its own, before, during or after a prompt. Where the "
            "agent repeats no id, it goes by the origin of the result, else by the order of the turns."
        ),
        open="A supervisor may hide background turns or show them: no check asks for them.",
    ),
    Rule(
        name="B2",
        demands="background commands are tracked to their end; a lost one is named, and none blocks anything",
        why=(
            "A supervisor that waits for a command that never ends hangs, at the next prompt or at the close. A "
            "supervisor that forgets the command loses work without a word."
        ),
        report="https://github.com/preset-io/agor/issues/2067",
        reference=(
            "It follows each command until it is completed, failed or stopped. A close waits for none. A warning names "
            "every command and sub-agent whose end was never reported, or that was stopped."
        ),
        open="The warning has the level `should`. `background_grace` is the supervisor's choice.",
    ),
    Rule(
        name="B3",
        demands="background turns stay out of prompts' turns after an error result, too",
        why=(
            "Some fixes for background turns look only after a good result. After an API error or an interrupt the old "
            "fault is back: every answer lags by one."
        ),
        report="https://github.com/agentclientprotocol/claude-agent-acp/issues/654",
        reference="The same ids decide after an error, after a cancel and after a second result without an id.",
    ),
    Rule(
        name="B4",
        demands="a hook is called once, even if it fired early; its tool waits, at most hook_timeout",
        why=(
            "A hook that fires before its callback exists is lost, and the client never learns about the tool. If the "
            "missing answer counts as consent, a tool runs that the callback would have refused."
        ),
        report="https://github.com/agentclientprotocol/claude-agent-acp/pull/353",
        reference=(
            "A hook after a tool is answered at once and kept; when its callback is registered, the callback runs "
            "once. After five minutes it is dropped. A hook before a tool makes the tool wait for the callback and its "
            "answer, at most 60 s, then the tool is denied. A callback that raises is a warning, and denies."
        ),
        open="The five minutes have the level `info`. That no tool runs without its hook is a `must`.",
    ),
    Rule(
        name="C1",
        demands="a lingering agent gets linger_grace, TERM, linger_kill_grace, KILL; the outcome stands",
        why=(
            "Agents often print their result and do not exit: an open socket, a timer, a server. A supervisor that "
            "waits for the exit hangs for hours. One that reports the exit code of the kill turns a success into a "
            "failure."
        ),
        report="https://github.com/nicobailon/pi-subagents/issues/95",
        reference=(
            "The result decides the outcome, whatever the process does next. The graces are 0.25 s and 0.25 s. An "
            "agent that exits inside the grace gets no signal. A claude with a running background command may linger "
            "for `background_grace` more. Where a dialect can take its end back (pi tries again after an error), the "
            "run continues."
        ),
        open="With a code of its own after a good result the run stays completed (`exit_contradicts_result`).",
    ),
    Rule(
        name="C2",
        demands="a stop reason that asks for a tool is not completion, nor is an exit without a result",
        why=(
            "A supervisor that takes any finished message as the end kills the agent before its tool runs. A "
            "supervisor that trusts exit code 0 reports an empty answer as success."
        ),
        report="https://github.com/openai/codex/issues/24556",
        reference=(
            "Only the event that ends the work in its dialect completes a run. An exit without it is `incomplete`, "
            "whatever the code. Dialects without such an event (raw, gemini text and json) are judged by the exit."
        ),
    ),
    Rule(
        name="C3",
        demands="the result survives a forced exit; artifacts are whole or absent, and never fatal",
        why=(
            "The answer of an agent that had to be killed is as good as any other; users lose it together with its "
            "cost. A full disk must not turn a good run into a failure, and half a result file misleads its reader."
        ),
        report="https://github.com/MoonshotAI/kimi-code/issues/2902",
        reference=(
            "Everything that the agent reported before it was ended is in the result. Each file grows under another "
            "name and then appears whole; `result.json` comes last. A file that cannot be written is a warning."
        ),
        open="A supervisor without files is not asked. Only a full or read-only disk is a `must`.",
    ),
    Rule(
        name="C4",
        demands="exit is the process's exit, not its pipes' EOF",
        why=(
            "A server that the agent started inherits its stdout and holds it open. A supervisor that waits for the "
            "end of the pipe waits for the server."
        ),
        report="https://github.com/python/cpython/issues/119710",
        reference=(
            "It waits for the process itself, reads what is in the pipes at that moment, and goes on. The process that "
            "holds the pipe is ended (T6)."
        ),
    ),
    Rule(
        name="F1",
        demands="one line is one event whatever the chunking",
        why=(
            "Pipes cut output anywhere: inside a character, between two halves of a line end. Decoding each chunk "
            "alone puts replacement characters into the answer, or loses its last line."
        ),
        report="https://github.com/agentclientprotocol/codex-acp/pull/397",
        reference=(
            "Bytes are collected to lines and then decoded. A byte order mark, CRLF and a missing last line end change "
            "nothing. Two JSON objects on one line are two events. Terminal escapes before an object do not cost the "
            "event."
        ),
    ),
    Rule(
        name="F2",
        demands="a line that does not parse is noise: kept, counted, never fatal",
        why=(
            "Launchers, shells and libraries print banners and warnings to stdout. A supervisor that raises on the "
            "first such line loses the run."
        ),
        report="https://github.com/anthropics/claude-agent-sdk-python/issues/32",
        reference=(
            "Such a line is kept in the log and counted. That holds for half an object and for bytes that are not "
            "UTF-8, too. An event of a type that it does not know changes nothing: each version of a CLI adds some."
        ),
        open="In ACP an object that is not a message may be noise or a protocol error; both readings pass.",
    ),
    Rule(
        name="F3",
        demands="a line over max_line_bytes is a protocol error",
        why=(
            "Reader libraries often stop at 64 KiB or 1 MiB, and one large file in a tool result ends the session. A "
            "line without any end must not fill the memory either."
        ),
        report="https://github.com/inkbox-ai/claude-code-plugin/pull/11",
        reference=(
            "The limit is 16 MiB. Above it the run or turn ends as `protocol_error` and the tree is ended; a session "
            "starts the next agent. The line end does not count."
        ),
        open=(
            "The size of the limit is the supervisor's choice; that 200 KiB pass is a `must`. For a supervisor that "
            "states max_line_bytes as None, no line is too long, and only lines of 200 KiB are tried. That its "
            "memory fills is then its own choice, and no scenario can print so much."
        ),
    ),
    Rule(
        name="F4",
        demands="stderr is always drained; its tail is kept",
        why=(
            "A pipe that is not read fills up at 64 KiB, and the agent blocks in the middle of its work. Without the "
            "last lines of stderr a crash has no explanation."
        ),
        report="https://github.com/JJtmc1234/carl/issues/7",
        reference=(
            "Both streams are read all the time, also before the handshake and while the agent is being ended. The "
            "last 64 KiB of stderr are kept and quoted when an agent fails."
        ),
    ),
    Rule(
        name="F5",
        demands="stdin is written while output is read; EPIPE never raises",
        why=(
            "An agent that prints before it reads fills its pipe while the supervisor is blocked in writing the "
            "prompt: both wait for ever. An agent that exits before it reads must not crash the supervisor."
        ),
        report="https://github.com/openai/codex-action/issues/153",
        reference=(
            "Writing and reading go on side by side, for prompts of any size. After a broken pipe the agent's exit or "
            "result decides. If it lives on in silence without the prompt, the run ends as `input_failed`."
        ),
    ),
    Rule(
        name="F6",
        demands="memory is bounded whatever the agent prints; the final message is kept whole",
        why="An agent that prints for hours makes a supervisor that keeps everything grow until the machine kills it.",
        report="https://github.com/unfence-labs/hive/pull/264",
        reference=(
            "It keeps the last 16 MiB of the transcript. The final message is kept whole if it comes in one line. The "
            "warning `transcript_truncated` says that something was dropped."
        ),
        open="The scenarios ask for the end of the text, and do not measure the memory.",
    ),
    Rule(
        name="P1",
        demands="prompt_timeout cancels the turn, not the agent, which is ready for the next prompt at once",
        why=(
            "A supervisor that kills the agent for one slow turn loses the conversation. A session that says it is "
            "ready without a process drops the next prompts without a word."
        ),
        report="https://github.com/raphaeltm/simple-agent-manager/pull/132",
        reference=(
            "It sends the cancel of the dialect and reports the error to viewers. The turn ends as `timed_out`. Agent, "
            "connection and session id stay. The next prompt is accepted at once and waits until the agent has "
            "acknowledged the cancel (P3)."
        ),
        open="The number is the supervisor's own; the default is 3600 s.",
    ),
    Rule(
        name="P2",
        demands="progress moves the prompt's deadline; signs of life do not, and an open question rests it",
        why=(
            "A fixed deadline cancels a turn that works. A deadline that heartbeats move never ends a turn that hangs. "
            "A human who takes an hour to answer a question must not make the agent time out."
        ),
        report="https://github.com/fastestdevalive/vibe-station/pull/152",
        reference=(
            "Messages, pieces of them, tools, sub-agents and questions move the deadline. Noise, stderr, heartbeats, "
            "status lines and background turns do not. While a question of the turn is open, the deadline rests; with "
            "the answer it starts anew."
        ),
        open="That a turn ends whose agent only gives signs of life is a `must`; when it ends is a `should`.",
    ),
    Rule(
        name="P3",
        demands="an agent is forced to stop only if it never acknowledges a cancel, or on request",
        why=(
            "Killing the agent seconds after a cancel loses a session that was about to continue. Never killing it "
            "leaves a session that takes prompts and answers none."
        ),
        report="https://github.com/langgenius/mosoo-agent-driver/issues/107",
        reference=(
            "The grace is 300 s. Prompts that come meanwhile wait and go out after the acknowledgement, in their "
            "order. For claude only the error result acknowledges an interrupt, not the control response. Without an "
            "acknowledgement the tree is ended and the next agent starts. Stop and close do not wait."
        ),
        open="The length of the grace is the supervisor's own.",
    ),
    Rule(
        name="P4",
        demands="viewers detach and attach again: they see the status and the whole transcript",
        why="A user who reloads the page finds an empty or dead session, although the agent works.",
        report="https://github.com/NousResearch/hermes-agent/issues/34703",
        reference=(
            "A viewer that attaches reads everything from the beginning, as far back as 16 MiB of it are kept, and "
            "then follows. Errors such as a timeout are among the events."
        ),
        open="Supervisors without viewers are not asked.",
    ),
    Rule(
        name="P5",
        demands="late events of a cancelled turn, and the history of a loaded session, never reach the next turn",
        why=(
            "The agent still prints for a while after a cancel. If its words or its result count for the next prompt, "
            "that prompt gets the wrong answer and the real one is lost. An agent that loads a session repeats its old "
            "words in the same form as new ones."
        ),
        report="https://github.com/openabdev/openab/pull/760",
        reference=(
            "Lines that name their turn are believed. In ACP, which names none, everything before the acknowledgement "
            "belongs to the cancelled turn. Viewers read such words marked as late. A second answer, or an answer to a "
            "request that was never made, is dropped. The history of a loaded session is shown to viewers as such. In "
            "codex app-server a sub-agent's thread ends no turn."
        ),
        open=(
            "An agent may answer a cancelled turn with a good result; in ACP that is the stop reason `end_turn`. Two "
            "outcomes of that turn are right: `completed`, because the agent says so, and `cancelled`, because the "
            "caller asked for it. If the agent gave an answer, `should` asks for `completed`. Any other outcome is "
            "wrong. The answer acknowledges the cancel either way."
        ),
    ),
    Rule(
        name="P6",
        demands="an agent that cannot be started has an outcome; no crash sends a prompt again",
        why=(
            "A start that fails with an exception takes the program down; a handshake that never comes hangs it. A "
            "prompt that is sent twice does its work twice: two commits, two mails. Restarts without a pause burn the "
            "machine."
        ),
        report="https://github.com/clawbench-dev/clawbench/pull/280",
        reference=(
            "No start is `spawn_failed` (127 not found, 126 not executable). No handshake within 30 s is "
            "`handshake_failed`. A crash ends the prompt in flight as `agent_lost`; waiting prompts go to the next "
            "agent. It starts after 1 s, then 2 s, up to 60 s, at most 5 times in 10 minutes. Two agents never live at "
            "once. The next codex app-server resumes the thread."
        ),
        open="Pauses and number of restarts are `should` and `info`. No restart at all is fine if it is stated.",
    ),
    Rule(
        name="P7",
        demands="the agent's question is answered within permission_timeout, else denied",
        why=(
            "The agent waits for an answer for ever, and the session looks frozen. If a missing answer counts as yes, "
            "a tool runs that the user never allowed."
        ),
        report="https://github.com/anthropics/claude-agent-sdk-python/issues/1105",
        reference=(
            "The caller has 300 s. Every answer but yes denies, an error too. Questions are answered also after the "
            "result, between turns and in background turns. A cancel or a close withdraws the open questions. An "
            "answer that comes too late allows nothing."
        ),
    ),
    Rule(
        name="P8",
        demands="a close ends stdin; then close_grace, TERM, kill_grace, KILL",
        why=(
            "An agent that ignores the end of its stdin stays for ever after its session, with all its servers. An "
            "agent that is killed at once cannot save its state."
        ),
        report="https://github.com/modelcontextprotocol/java-sdk/issues/937",
        reference=(
            "Both graces are 2 s. An agent that leaves at the end of its stdin gets no signal. The turn in flight ends "
            "as `stopped`, and so do the prompts that wait. Open questions and background commands hold nothing up."
        ),
        open="A caller may be given control back before the last process is gone, if none is left in the end.",
    ),
    Rule(
        name="P9",
        demands="one prompt is in flight per session; the next is delivered after its outcome",
        why=(
            "claude folds a prompt that arrives while a tool runs into the running turn: one result for two prompts, "
            "and the caller waits for ever for the second. pi refuses such a prompt."
        ),
        report="https://github.com/PrimeIntellect-ai/prime-agent/issues/1206",
        reference=(
            "Prompts wait in a queue in the order in which they were asked. An answer with an error is an outcome like "
            "any other."
        ),
    ),
    Rule(
        name="T1",
        demands="terminate and kill mean the whole tree",
        why=(
            "claude, codex, pi and gemini run each tool in a session of its own. A signal to the agent, or to its "
            "process group, leaves compilers, servers and browsers running; users report hundreds of them."
        ),
        report="https://github.com/anthropics/claude-code/issues/33947",
        reference=(
            "It lists all descendants before the first signal and sends TERM and CONT to each. After `kill_grace` (2 "
            "s) it kills until nothing is left, also processes that start meanwhile. With containment `group` it finds "
            "descendants and members of the agent's session; `subreaper` and `keeper` also find processes that left "
            "both."
        ),
        open="Processes that left the tree are asked only of supervisors with `subreaper` or `keeper`.",
    ),
    Rule(
        name="T2",
        demands="no signal to a pid that may have been reused",
        why=(
            "Between the exit of the agent and a late signal its pid may belong to another program. The wrong process "
            "is killed, in the worst case every process of the user."
        ),
        report="https://github.com/NousResearch/hermes-agent/pull/43135",
        reference=(
            "It signals through pidfds, or processes that it has not reaped yet. An agent that exits at the instant of "
            "a signal gets none."
        ),
        open="A signal to a pid that is free by then is shown in the timeline, and decides nothing.",
    ),
    Rule(
        name="T3",
        demands="no zombie among the supervisor's own children",
        why=(
            "Each agent that is killed and not waited for leaves an entry in the process table. In a container they "
            "pile up until no process can start."
        ),
        report="https://github.com/dustinblack/agent-dashboard/issues/108",
        reference=(
            "Every agent is reaped before its run returns, and its pipes are closed. A zombie that the agent itself "
            "never reaped does not hold up the end."
        ),
    ),
    Rule(
        name="T4",
        demands="a supervisor that is cancelled leaves no process, wherever it was",
        why=(
            "The cancellation comes in the middle of an await, often in the cleanup itself. Then the rest of the "
            "cleanup is skipped, and the agent lives on."
        ),
        report="https://github.com/agronholm/anyio/pull/672",
        reference=(
            "Whenever its task is cancelled, it kills the tree at once and without a grace, reaps it, and only then "
            "lets the cancellation continue."
        ),
        open="A cancelled supervisor may give a grace or none.",
    ),
    Rule(
        name="T6",
        demands="descendants left by an agent that exits by itself are ended before the run returns",
        why=(
            "Launchers, servers and daemons survive the agent that started them. They hold ports, files and memory, "
            "and nothing will ever end them."
        ),
        report="https://github.com/zed-industries/zed/issues/56146",
        reference=(
            "The leftovers get TERM, `leftover_kill_grace` (0.25 s) and KILL. The outcome and its instant are those of "
            "the agent's exit."
        ),
        open="Processes that left the tree are asked only of supervisors with `subreaper` or `keeper`.",
    ),
)

RULES = {rule.name: rule for rule in _ALL_RULES}
"""Every rule by its name."""
