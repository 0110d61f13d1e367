"""The owner of a process, judged from values: every kind of evidence, and every reason to leave a process alone."""

from __future__ import annotations

from typing import Any

from pytest_agentproc.tree._ownership import Ownership, OwnershipFacts, attribute_processes
from pytest_agentproc.tree._snapshots import ProcessState
from pytest_agentproc.tree._starts import ProcessStart

ME, SESSION = 100, 90
SECOND = 1_000_000_000


def build_process(
    pid: int, parent: int = ME, session: int = SESSION, state: str = "alive", born: int = 5 * SECOND
) -> ProcessState:
    """Make a snapshot of a process that was born at 5 s."""
    return ProcessState(pid, parent, session, state, born, f"program {pid}")


def build_start(pid: int, number: int = 0, *, is_own: bool = True, at: int = 5 * SECOND) -> ProcessStart:
    """Make a start that was known at 5 s."""
    return ProcessStart(number, f"start {pid}", (f"test.py:{pid}",), is_own=is_own, pid=pid, at=at)


def judge_ownership(*snapshots: ProcessState, **known: Any) -> Ownership:
    """Judge them, with others about who might have started what nothing is known of, unless told otherwise."""
    return attribute_processes(snapshots, OwnershipFacts(ME, SESSION, **{"others": True, **known}))


def list_owned(found: Ownership) -> dict[int, tuple[str, int]]:
    """Give how each belongs, and the start of its root."""
    return {owned.snapshot.pid: (owned.how, owned.start.pid if owned.start else 0) for owned in found.mine}


def test_a_child_belongs_by_its_start() -> None:
    """A process that was started here, alive or dead, has to be ended and waited for here."""
    found = judge_ownership(
        build_process(1), build_process(2, state="zombie"), starts={1: build_start(1), 2: build_start(2)}
    )
    assert list_owned(found) == {1: ("child", 1), 2: ("child", 2)}
    assert found.spent == ()


def test_a_descendant_belongs_with_its_root_and_knows_its_ancestors() -> None:
    """The chain is what a reader follows up to the line that started it."""
    found = judge_ownership(build_process(1), build_process(2, 1), build_process(3, 2), starts={1: build_start(1)})
    assert list_owned(found) == {1: ("child", 1), 2: ("descendant", 1), 3: ("descendant", 1)}
    assert [owned.pid for owned in found.mine[2].above] == [2, 1]


def test_an_orphan_belongs_by_its_cookie() -> None:
    """The cookie names the very start, or just whose it is."""
    found = judge_ownership(
        build_process(2), build_process(3, 2), build_process(4), cookies={2: build_start(1), 4: None}
    )
    assert list_owned(found) == {2: ("adopted", 1), 3: ("descendant", 1), 4: ("adopted", 0)}


def test_an_orphan_belongs_by_a_session_that_a_start_led() -> None:
    """A number stays taken as long as it is a session's: a dead leader is known by it."""
    assert list_owned(judge_ownership(build_process(2, session=1), starts={1: build_start(1)})) == {2: ("adopted", 1)}


def test_an_orphan_belongs_by_a_session_that_a_belonging_is_in_or_was() -> None:
    """A daemon's helper without an environment is found by the daemon."""
    found = judge_ownership(build_process(1, session=7), build_process(2, session=7), starts={1: build_start(1)})
    assert list_owned(found) == {1: ("child", 1), 2: ("adopted", 1)}
    assert list_owned(judge_ownership(build_process(2, session=7), sessions={7: build_start(1)})) == {2: ("adopted", 1)}


def test_this_process_own_session_proves_nothing() -> None:
    """Any process may be in it."""
    found = judge_ownership(build_process(1), build_process(2), starts={1: build_start(1)})
    assert (list_owned(found), [process.pid for process in found.unknown]) == ({1: ("child", 1)}, [2])


def test_an_orphan_belongs_if_nobody_else_was_there() -> None:
    """The hardest daemon, without environment and in a session of its own; its root is known if it can be but one."""
    assert list_owned(judge_ownership(build_process(2, session=2), others=False)) == {2: ("adopted", 0)}
    assert list_owned(judge_ownership(build_process(2, session=2), others=False, candidates=[build_start(1)])) == {
        2: ("adopted", 1)
    }
    assert list_owned(
        judge_ownership(build_process(2, session=2), others=False, candidates=[build_start(1), build_start(3)])
    ) == {2: ("adopted", 0)}


def test_an_orphan_that_was_seen_below_a_start_stays_known() -> None:
    """Its parent is killed first."""
    [claim] = [
        owned
        for owned in judge_ownership(build_process(1), build_process(2, 1), starts={1: build_start(1)}).mine
        if owned.how == "descendant"
    ]
    assert list_owned(judge_ownership(build_process(2), claimed={(2, 5 * SECOND): claim})) == {2: ("adopted", 1)}


def test_what_nothing_is_known_of_is_nobodys() -> None:
    """It is reported, with all processes below it, and nothing else."""
    found = judge_ownership(build_process(2, session=2), build_process(3, 2, session=2))
    assert (found.mine, [process.pid for process in found.unknown], found.spent) == ((), [2, 3], ())


def test_who_was_there_before_is_left_alone_with_all_its_tree() -> None:
    """A server of the session may start what it likes, and daemonise."""
    before = {(1, 5 * SECOND): ME}
    found = judge_ownership(
        build_process(1, session=1), build_process(2, 1, session=1), build_process(3, session=1), before=before
    )
    assert found == Ownership()
    assert judge_ownership(build_process(1, session=1, state="zombie"), before=before) == Ownership()


def test_who_was_below_somebody_before_and_is_a_dead_child_now_is_reaped() -> None:
    """Only adoption brought it here, and no other process can wait for it."""
    assert judge_ownership(build_process(2, state="zombie"), before={(2, 5 * SECOND): 1}).spent == (2,)


def test_a_pid_of_before_that_is_another_process_now_is_judged_anew() -> None:
    """A number alone is no identity."""
    found = judge_ownership(build_process(1), before={(1, 3 * SECOND): ME}, starts={1: build_start(1)})
    assert list_owned(found) == {1: ("child", 1)}


def test_a_start_whose_pid_is_anothers_by_now_proves_nothing() -> None:
    """A process that is born after that start was known is not the started process."""
    found = judge_ownership(build_process(1, born=9 * SECOND), starts={1: build_start(1)})
    assert (list_owned(found), [process.pid for process in found.unknown]) == ({}, [1])


def test_what_others_start_here_is_theirs() -> None:
    """A thread of the session, or a fixture that outlives the test, starts its own; so does multiprocessing."""
    theirs = build_start(1, is_own=False)
    assert (
        judge_ownership(
            build_process(1, session=1), build_process(2, 1), build_process(3, session=1), starts={1: theirs}
        )
        == Ownership()
    )
    assert judge_ownership(build_process(3, session=3), cookies={3: theirs}) == Ownership()
    assert judge_ownership(build_process(4), build_process(5, 4), helpers={4}) == Ownership()


def test_a_process_that_multiprocessings_forkserver_starts_for_the_test_is_the_tests() -> None:
    """Its parent is none of the test's, its start is known."""
    assert list_owned(
        judge_ownership(build_process(4), build_process(5, 4), helpers={4}, starts={5: build_start(5)})
    ) == {5: ("child", 5)}


def test_what_is_excused_is_left_alone_with_all_its_tree() -> None:
    """Fakes have their lifelines, and users may allow a process: by pid, by command, and by what was asked for."""

    def excuses(pid: int, command: str) -> bool:
        return pid == 1 or command in ("program 2", "start 3")

    starts = {pid: build_start(pid) for pid in (1, 2, 3)}
    found = judge_ownership(
        build_process(1),
        build_process(2),
        build_process(3, session=3),
        build_process(4, 1),
        starts=starts,
        excuses=excuses,
    )
    assert found == Ownership()
    assert list_owned(judge_ownership(build_process(5, session=3), starts=starts, excuses=excuses)) == {}
    assert (
        judge_ownership(build_process(5, session=5), cookies={5: build_start(3)}, starts=starts, excuses=excuses)
        == Ownership()
    )


def test_an_adopted_one_that_is_dead_is_reaped_and_not_counted() -> None:
    """Without adoption the system's init would have reaped it: no program has neglected it."""
    starts = {1: build_start(1)}
    found = judge_ownership(build_process(2, session=1, state="zombie"), starts=starts)
    assert (found.mine, found.spent) == ((), (2,))
    excused = judge_ownership(
        build_process(2, session=1, state="zombie"), starts=starts, excuses=lambda pid, _command: pid == 1
    )
    assert excused == Ownership(spent=(2,))


def test_a_dead_child_of_which_nothing_is_known_is_not_reaped() -> None:
    """Code below Python may have started it, and wait for it."""
    assert judge_ownership(build_process(2, state="zombie")) == Ownership()


def test_a_command_is_what_was_asked_for() -> None:
    """A zombie has no command line any more, and a fork has that of this process."""
    found = judge_ownership(build_process(1), starts={1: build_start(1)}).mine[0]
    assert found.describe_command("program 9") == "start 1"
    fork = judge_ownership(
        build_process(1), starts={1: ProcessStart(0, "a fork of this process", pid=1, at=5 * SECOND)}
    ).mine[0]
    assert (fork.describe_command("program 1"), fork.describe_command("program 9")) == (
        "a fork of this process",
        "program 1",
    )
