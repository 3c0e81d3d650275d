"""What tells that a node of a dedicated MirrorMaker was restarted, and in which mode it runs: no request reaches it.

That it was: the member that it was has left, and one from the same host has joined. In which mode: its own file, and
what only such a mode does, the leader's claim of its transactional id and those of exactly-once tasks.
"""

from __future__ import annotations

from dataclasses import replace

from eosctl.app import App
from eosctl.core.wording import counted
from eosctl.group.gather import GroupObservation, WorkerObservation
from eosctl.group.mirror_makers import KnownNodes, NodeName, are_alike
from eosctl.upgrade.roll.step import Expected, GateFailedError

UNPROVEN = "by file and membership; nothing without REST proves the mode"


def told_by_count(group: GroupObservation, expected: Expected) -> tuple[GroupObservation, Expected]:
    """Group and step with the names that nodes have by now: of those of one host, that which went is the step's."""
    if not expected.mirror_maker or not group.stable:
        return group, expected
    there = {str(member.member_id) for member in group.members}
    known = KnownNodes(expected.before.members, expected.workers, expected.alike).now(there)
    others = {name: str(known[name]) for name in expected.before.others if name in known}
    before = replace(expected.before, members=known, others=others)
    return group.named_as(KnownNodes(known)), replace(expected, before=before)


def node_proof(app: App, member: WorkerObservation, expected: Expected) -> str:
    """What was seen of a node's restart, and what its own file says; raises GateFailedError for another mode."""
    own = {str(path.resolve()) for path in expected.files}
    told = [each for each in app.target.worker_configs if each.properties.source in own]
    wrong = [each for each in told if each.exactly_once not in (None, expected.mode.value)]
    if wrong:
        raise GateFailedError(
            f"gate mode_proven: {wrong[0].properties.source} says {wrong[0].exactly_once} instead of "
            f"{expected.mode.value}",
            hint="See what sets it.",
        )
    said = [f"{each.properties.source} says {each.exactly_once}" for each in told if each.exactly_once is not None]
    moved = f"member {member.member_id} joined from {member.client_host}"
    former = expected.before.members.get(member.name)
    left = f"member {former} left, and " if former is not None else ""
    alike = [name for name in expected.before.members if are_alike(name, member.name)]
    place = NodeName.read(member.name).place
    count = [f"{counted(len(alike) + 1, 'node')} at {place} can't be told apart, and go by count"] if alike else []
    return "; ".join([*(said or [f"its mode is taken from its restart ({expected.words})"]), left + moved, *count])
