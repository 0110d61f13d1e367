"""Open a session with an agent. The public door of conversations; owns no judgement."""

from __future__ import annotations

import uuid
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from pytest_agentproc.clock import SystemClock, current_clock
from pytest_agentproc.errors import UsageError
from pytest_agentproc.supervisor._command import check_command
from pytest_agentproc.supervisor._conversation import Conversation
from pytest_agentproc.supervisor._session import Session
from pytest_agentproc.supervisor._session_driver import Mute, SessionDriver
from pytest_agentproc.supervisor._session_task import SessionDeciders, SessionTask
from pytest_agentproc.supervisor._spawn import spawner
from pytest_agentproc.supervisor.dialects import Setting
from pytest_agentproc.tree import Bell
from pytest_agentproc.vocabulary import Dialect, Policy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from pytest_agentproc.clock import Clock
    from pytest_agentproc.supervisor._session import Handler

__all__ = ["open_session"]


@asynccontextmanager
async def open_session(
    argv: Sequence[str],
    *,
    dialect: str | Dialect,
    mode: str = "",
    policy: Policy | None = None,
    permission: Handler | None = None,
    hooks: Mapping[str, str] | None = None,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    deciders: SessionDeciders | None = None,
    key: str | None = None,
    trace: Callable[[int, str, dict[str, Any]], None] | None = None,
) -> AsyncIterator[Session]:
    """Open a session; its agent starts at once, and prompts can be asked before it is ready.

    What the agent does is never raised: it is a turn's outcome, or the session's status. The end of the block closes
    the session as `Session.close` does. Cancelled anywhere, also while it closes, it kills the tree and reaps the agent
    before the cancellation goes on. A death before the first handshake is final; `Session` says what follows it.

    Args:
        argv: the agent's command, with what makes it speak the dialect: `pi --mode rpc`; an ACP agent's own flag;
            `claude --input-format stream-json --output-format stream-json --verbose`, for questions also
            `--permission-prompt-tool stdio`.
        dialect: its wire format: "pi", "acp" or "claude"; or a `vocabulary.Dialect` of your own.
        mode: the variant of the wire format; "" is the only one that holds sessions.
        policy: the limits; their units are seconds.
        permission: called with each question of the agent; it returns True to allow. Without one all are denied at
            once. It may take `permission_timeout`; one that raises denies.
        hooks: claude's hooks to announce: a name of yours for each, and the event that it hears of: `PreToolUse`,
            `PostToolUse`, `Stop` and so on, for every tool. `Session.on_hook` has it call back.
        cwd: where the agent runs; None: here.
        env: its whole environment; None: ours.
        clock: whose time counts; None: the virtual clock that runs this code, or else real time.
        deciders: replaced judgements, for tests of tests.
        key: what makes this session's marks on its prompts unlike any other's; None: something random.
        trace: called with (instant, code, data) for each thing that the supervisor does.

    Raises:
        UsageError: no command that a process can be given, a dialect or mode without sessions, hooks where none are,
            or a /proc that shows another pid namespace.
    """
    check_command(argv, cwd, env, 'open_session(["pi", ...])')
    name = _name(dialect, hooks)
    clock = clock or current_clock() or SystemClock()
    setting = Setting(
        str(Path.cwd() / (cwd or "")), uuid.uuid4().hex if key is None else key, tuple((hooks or {}).items())
    )
    task = SessionTask(
        argv, dialect, mode, policy or Policy.for_dialect(name), setting, has_handler=permission is not None
    )
    made = deciders or SessionDeciders()
    machine = Conversation(task, made)
    session = Session(machine, clock, permission, made.transcript())
    spawn = spawner(argv, cwd, env, clock)
    driver = SessionDriver(machine, spawn, _bell(session), clock.instant, session.hear, trace)
    session.drive_by(driver)
    async with _driven(session, driver):
        yield session


def _bell(session: Session) -> Bell | Mute:
    """Give the session its descriptor, or what stands for one if none is left."""
    try:
        return Bell()
    except OSError as error:
        return session.mute(error)


def _name(dialect: str | Dialect, hooks: Mapping[str, str] | None) -> str:
    """Give the dialect's name, if it has the hooks that are asked for."""
    name = dialect.name if isinstance(dialect, Dialect) else dialect
    if hooks and dialect != "claude":
        raise UsageError(f"there are hooks, but dialect {name!r} has none", 'leave them out, or use "claude"')
    return name


@asynccontextmanager
async def _driven(session: Session, driver: SessionDriver) -> AsyncIterator[None]:
    """Drive a session for as long as a block lasts, and close it then."""
    broken: Exception | None = None
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(session.run)
            group.start_soon(session.attend, group)
            try:
                yield
            except Exception as error:  # noqa: BLE001  # it goes on below, as itself and not within a group
                broken = error
            await session.close()
            group.cancel_scope.cancel()
    finally:
        driver.abandon()
    if broken is not None:
        raise broken
