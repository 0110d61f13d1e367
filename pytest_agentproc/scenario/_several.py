"""Owns the key `sessions`: several agents at a time, each with what else a file says of its one agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.scenario._agent import AGENT, Policies, Script, Scripts
from pytest_agentproc.scenario._drive import HANDLERS
from pytest_agentproc.scenario._elsewhere import COMMANDS, words
from pytest_agentproc.scenario._fields import Fields, Key
from pytest_agentproc.scenario._kinds import Word
from pytest_agentproc.scenario._nodes import Mapping, Node, Scalar
from pytest_agentproc.scenario._shapes import MapOf
from pytest_agentproc.scenario._steps import STEPS
from pytest_agentproc.scenario._words import choices, nearest

if TYPE_CHECKING:
    from pytest_agentproc.scenario._check import Check

__all__ = ["SESSION_KEYS", "SEVERAL", "require_script"]

_SCRIPTS = {"script", "scripts"}
_RESERVED = ("agent", "caller", "supervisor", "tree")


class _Agent:
    """Who the agent of a session is: one that lives on from prompt to prompt."""

    label = AGENT.label
    shape = AGENT

    def read(self, node: Node, what: str, check: Check) -> Any:
        """Read it as any agent."""
        values = AGENT.read(node, what, check)
        if values is not None and not check.is_session:
            about = f"the dialect {check.dialect} in mode {check.mode} is one run"
            living = choices([f"{dialect} {mode}" for dialect, mode in check.language.sessions])
            check.at(node, f"{what} must be a session's: {about}, sessions are {living}")
            check.mode = ""
        return values


_KEYS = (
    Key("agent", _Agent(), "who its agent is", required=True),
    Key("policy", Policies(), "limits that its supervisor is told"),
    Key("handler", HANDLERS, "how its caller answers; all questions are denied if absent"),
    Key("script", Script(), "what its fake does"),
    Key("scripts", Scripts(), "what it does in each invocation instead; the last holds for all further ones"),
)
SESSION_KEYS = {key.name: key for key in _KEYS}
"""What each session has for itself."""

_ELSEWHERE = {
    **words("it is a step, and belongs under script", STEPS),
    **words("it belongs under agent", (key.name for key in AGENT.mapping.keys)),
    "drive": "the drive of all sessions is the file's own, each item with session: NAME",
    "expect": "it is the file's own: expect: {sessions: {NAME: ...}}",
    **COMMANDS,
}


class _Several:
    """Sessions by name."""

    label = "{NAME: {agent, policy, handler, script or scripts}, ...}"
    form = Fields(_KEYS, elsewhere=_ELSEWHERE)
    shape = MapOf(form, Word("NAME"))

    def read(self, node: Node, what: str, check: Check) -> dict[str, Any]:
        """Read every session; the check keeps what later parts must know of each."""
        if not isinstance(node, Mapping):
            check.wrong(node, what, f"a mapping such as {self.label}")
            return {}
        if len(node.pairs) <= 1:
            count = "one" if node.pairs else "none"
            check.at(node, f"{what} must have two at least, not {count}: a single one's keys are the file's own")
        for name, _ in node.pairs:
            self._take_name(name, what, check)
        found: dict[str, Any] = {}
        are_sound = True
        for name, value in node.pairs:
            for ids in (check.tools, check.tasks, check.folded):
                ids.clear()
            check.is_script_sound = True
            with check.about(name.text):
                found[name.text] = self.form.read(value, f"{what}.{name.text}", check)
                require_script(value, f"{what}.{name.text}", check)
            are_sound = are_sound and check.is_script_sound
        check.is_script_sound = are_sound
        check.dialect = check.mode = ""
        return found

    def _take_name(self, name: Scalar, what: str, check: Check) -> None:
        word = Word("NAME").read(name, f"a name in {what}", check)
        if word in _RESERVED:
            check.at(name, f'a name in {what} cannot be "{word}": records call another by that name')
        check.sessions[name.text] = name.line


SEVERAL = _Several()


def require_script(node: Node, what: str, check: Check) -> None:
    """Report an agent that nobody said anything of, and one of whom it was said twice."""
    keys = {key.text: key for key, _ in node.pairs} if isinstance(node, Mapping) else {"script": node}
    if check.is_spawned and not keys.keys() & _SCRIPTS and nearest("script", keys) is None:
        check.at(node, f"{what} needs the key script: what the fake does")
    if "script" in keys and "scripts" in keys:
        both = f"script (line {keys['script'].line}) and scripts: a script is what every invocation plays"
        check.at(keys["scripts"], f"{what} has both {both}")
