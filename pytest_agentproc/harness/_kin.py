"""Who is whose parent, in which session and which group, as the kernel has it. Owns kinship; plays and judges nothing.

A process that ends is survived by its children: the next living ancestor that is a subreaper adopts them, or else
somebody outside the tree does. A group with a stopped member that loses its last parent outside itself, in its own
session, is sent HUP and CONT.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_agentproc.harness._actors import Process

__all__ = ["Kin", "Reach"]

_ORPHANS = ("double_fork", "daemon", "launcher", "refork")
_IN_GROUP = ("same_group", "double_fork")
_IN_SESSION = (*_IN_GROUP, "own_group")
_HUP = 1


class Kin:
    """One process among the others of its tree.

    Args:
        process: whose kinship it is.
        above: who spawned it; None for an agent, which leads its session.
        how: the way in which it was spawned.
        is_subreaper: whether it adopts what its descendants let go of.
        is_cleared: whether it began with an empty environment.
    """

    def __init__(
        self, process: Process, above: Kin | None, how: str, *, is_subreaper: bool = False, is_cleared: bool = False
    ) -> None:
        self.process = process
        self.is_subreaper = is_subreaper
        self.is_cleared: bool = is_cleared or (above is not None and above.is_cleared)
        self.children: list[Kin] = []
        self.tree: list[Kin] = [] if above is None else above.tree
        self.group: list[Kin] = above.group if above is not None and how in _IN_GROUP else []
        self.session: list[Kin] = above.session if above is not None and how in _IN_SESSION else []
        self.parent = above if above is None or how not in _ORPHANS else above.heir()
        for relatives in (self.tree, self.group, self.session):
            relatives.append(self)
        if self.parent is not None:
            self.parent.children.append(self)

    @classmethod
    def of(cls, process: Process, above: Kin, fields: dict[str, Any]) -> Kin:
        """Give the kinship of a process that is spawned as a step says."""
        is_cleared, adopts = fields.get("clear_env", False), fields.get("subreaper", False)
        return cls(process, above, fields["how"], is_subreaper=adopts, is_cleared=is_cleared)

    def heir(self) -> Kin | None:
        """Find who adopts what a child of this process lets go of."""
        found: Kin | None = self
        while found is not None and not found.is_subreaper:
            found = found.parent
        return found

    def depart(self) -> None:
        """Be gone: the children are adopted, and groups that are orphaned by that hear of it."""
        heir = None if self.parent is None else self.parent.heir()
        left, self.children = self.children, []
        for child in left:
            child.parent = heir
            if heir is not None:
                heir.children.append(child)
            if child.group is not self.group and child.session is self.session:
                _disturb(child.group)
        above = self.parent
        if above is not None:
            above.children.remove(self)
            if above.group is not self.group and above.session is self.session:
                _disturb(self.group)

    def below(self) -> list[Kin]:
        """List who descends from it through parents that live, parents before children."""
        found: list[Kin] = []
        frontier = [self]
        while frontier:
            living = [child for child in frontier.pop(0).children if child.process.is_alive]
            found += living
            frontier += living
        return found


def _disturb(group: list[Kin]) -> None:
    """Send HUP and CONT to a group if it is orphaned and has stopped members."""
    members = [member for member in group if member.process.is_alive]
    if any(member.process.is_stopped for member in members) and not any(map(_ties, members)):
        for member in members:
            member.process.hear(_HUP)
        for member in members:
            member.process.go_on()


def _ties(member: Kin) -> bool:
    """Say whether a member's parent is outside its group, in its session: then the group is no orphan."""
    above = member.parent
    return above is not None and above.group is not member.group and above.session is member.session


class Reach:
    """Whom of an agent's tree its supervisor finds; see `vocabulary.CONTAINMENTS`.

    Args:
        agent: the agent.
        containment: how the tree is held.
    """

    def __init__(self, agent: Kin, containment: str) -> None:
        self._agent = agent
        self._containment = containment
        self._seen = [agent.session]

    def walk(self) -> list[Process]:
        """List the descendants that are found now."""
        found = self._agent.below()
        for kin in self._living(self._agent.session):
            found += [kin, *kin.below()]
        if self._containment == "subreaper":
            for orphan in self._living(self._agent.tree):
                if orphan.parent is None and self._is_attributed(orphan):
                    found += [orphan, *orphan.below()]
        elif self._containment == "keeper":
            found += self._living(self._agent.tree)
        self._seen += [kin.session for kin in found if not self._has_seen(kin)]
        return list(dict.fromkeys(kin.process for kin in found))

    def _living(self, relatives: list[Kin]) -> list[Kin]:
        return [kin for kin in relatives if kin is not self._agent and kin.process.is_alive]

    def _is_attributed(self, orphan: Kin) -> bool:
        return not orphan.is_cleared or self._has_seen(orphan)

    def _has_seen(self, kin: Kin) -> bool:
        return any(kin.session is session for session in self._seen)
