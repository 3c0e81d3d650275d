"""Finds who is back in the group after a restart, who else was restarted, and whose URL has changed.

No request reaches a node of a dedicated MirrorMaker. Its restart shows in the group: the former member has left, and
one from the same host has joined. Its mode shows in its own file, and in what only that mode does: the leader's claim
of its transactional id, and those of exactly-once tasks.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.wording import counted
from eosctl.errors import EosctlError
from eosctl.group.gather import in_turn
from eosctl.group.mirror_makers import KnownNodes, NodeName, are_alike
from eosctl.group.observed import GroupObservation, WorkerObservation
from eosctl.upgrade.roll.step import Expected, GateFailedError, members_of, reachable_url

UNPROVEN = "by file and membership; nothing without REST proves the mode"
RENAMED_AFTER_S = 30.0
"""A worker that is away for so long may have come back under another URL, if there is a new one."""
TOUCHED_HINT = (
    "See whether somebody else upgrades or restarts workers now, or why a worker lost its place in the group; "
    "--resume then continues."
)


def require_untouched(group: GroupObservation, expected: Expected) -> None:
    """Raise GateFailedError if workers that this roll did not touch have joined again: somebody else restarts them."""
    now = members_of(group)
    others = [url for url, member_id in expected.before.others.items() if now.get(url, member_id) != member_id]
    if group.stable and others:
        raise GateFailedError(touched_by_others(f"{', '.join(others)} joined again"), hint=TOUCHED_HINT)


def touched_by_others(what: str) -> str:
    """Describe a change of the group that this roll did not make."""
    return f"the group changes under this upgrade: {what}, which it had not restarted"


def renamed_worker(group: GroupObservation, expected: Expected) -> dict[str, str]:
    """Return the old and the new URL of a worker that came back under another one: long away, and one member is new."""
    there = members_of(group)
    new = [url for url, member_id in there.items() if url not in expected.before.members]
    missing = [url for url in expected.before.members if url not in there]
    if expected.at_once or not group.stable or len(new) != 1 or missing != list(expected.workers):
        return {}
    return {missing[0]: new[0]}


def under_new_names(expected: Expected, renamed: Mapping[str, str]) -> Expected:
    if not renamed:
        return expected
    members = {url: member_id for url, member_id in expected.before.members.items() if url not in renamed}
    return replace(
        expected,
        workers=tuple(renamed.get(url, url) for url in expected.workers),
        before=replace(expected.before, members=members),
        fenceable=expected.fenceable | set(renamed.values()),
    )


def not_back(app: App, group: GroupObservation, expected: Expected) -> str:
    """Describe who is missing, for gates members_known and group_stable: all are there, restarted ones as new ones."""
    if not group.stable:
        return f"the group is {group.state}"
    there = {member.name: member for member in group.members if member.member_id is not None}
    before = expected.before.members
    if expected.at_once:
        old = {member_id for member_id in before.values() if member_id}
        left = [member.name for member in there.values() if member.member_id in old]
        if left:
            return f"not restarted yet: {', '.join(left)}"
        wanted = expected.count(app) if expected.count else len(before)
        return "" if len(there) == wanted else f"{len(there)} of {wanted} members"
    missing = [url for url in {**before, **dict.fromkeys(expected.workers)} if url not in there]
    if missing:
        return f"not in the group: {', '.join(missing)}"
    same = [url for url in expected.workers if there[url].member_id == before.get(url)]
    return f"not restarted yet: {', '.join(same)}" if same else ""


def silent_workers(app: App, group: GroupObservation, expected: Expected) -> str:
    """Describe who does not answer and may hold the group up; during a rebalance the group reports no URLs."""
    silent = [str(member.url) for member in group.members if member.health == "unreachable"]
    if not group.stable and not expected.at_once and not expected.mirror_maker:
        silent = []
        for _url, worker in in_turn(app, [reachable_url(app, url) for url in expected.before.members]):
            try:
                worker.root()
            except EosctlError:
                silent.append(worker.url)
    return f"; no answer from {', '.join(silent)}" if silent else ""


def with_current_names(group: GroupObservation, expected: Expected) -> tuple[GroupObservation, Expected]:
    """Return group and step with the present names of nodes: of one host's, the node that left is the step's."""
    if not expected.mirror_maker or not group.stable:
        return group, expected
    there = {str(member.member_id) for member in group.members}
    known = KnownNodes(expected.before.members, expected.workers, expected.alike).now(there)
    others = {name: str(known[name]) for name in expected.before.others if name in known}
    before = replace(expected.before, members=known, others=others)
    return group.named_as(KnownNodes(known)), replace(expected, before=before)


def node_proof(app: App, member: WorkerObservation, expected: Expected) -> str:
    """Describe what was seen of a node's restart and what its own file says; raise GateFailedError for another mode."""
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
    count = [f"{counted(len(alike) + 1, 'node')} at {place} can't be distinguished, and are counted"] if alike else []
    return "; ".join([*(said or [f"its mode is taken from its restart ({expected.words})"]), left + moved, *count])
