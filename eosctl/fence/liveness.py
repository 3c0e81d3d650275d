"""Decides whether running tasks, of any group, hold the ids that are to be fenced, and who owns these ids.

The members of a group report which tasks they may run, and REST which of those have failed. Flags limit the questions:
with --live no worker is asked, as all tasks that members may run count as running; with --unknown-liveness nothing is
waited for; with both, nothing is asked.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.allowances import Waiver
from eosctl.core.ids import Owner, TransactionalId, groups_of_task, may_be_task, task_of
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError
from eosctl.fence.gather import FenceRequest, Gathered, liveness_unknown
from eosctl.fence.rules import LiveTask
from eosctl.group.listing import list_connect_groups
from eosctl.report import Problem
from eosctl.txn.owners import owners_of_ids

if TYPE_CHECKING:
    from eosctl.group.members import ConnectGroup


_QUICK_S = 5.0


class Liveness(Struct, frozen=True):
    """The ids that running tasks hold, and the ids of tasks of which it is unknown whether they run.

    `problems` are further problems; `connectors` are the known ones of the group that was named, and `group` is that
    group, if it was asked. `groups` are the visible Connect groups; None: unknown. `cluster_id` has come with them, and
    is empty where they are unknown.
    """

    by_id: Mapping[TransactionalId, LiveTask] = {}
    unknown: Mapping[TransactionalId, Problem] = {}
    problems: tuple[Problem, ...] = ()
    connectors: frozenset[str] = frozenset()
    group: ConnectGroup | None = None
    groups: frozenset[str] | None = None
    cluster_id: str = ""


def _groups_unknown(error: EosctlError) -> Problem:
    return liveness_unknown(f"the list of Connect groups is unknown: {error.message}", error.hint)


def find_liveness(app: App, request: FenceRequest, ids: Sequence[TransactionalId]) -> Liveness:
    """Ask every Connect group that one of `ids` may belong to; never take an unknown for a no.

    Raises RefusedError when a worker that was named belongs to another Kafka cluster.
    """
    if request.live and request.unknown_liveness:
        why = f"nobody was asked because of {Waiver.LIVE} and {Waiver.UNKNOWN_LIVENESS}"
        return Liveness(problems=(liveness_unknown(why),))
    app = _with_part_of_the_time(app, request)
    groups, cluster_id, error = list_connect_groups(app)
    doubt = None if error is None else _groups_unknown(error)
    by_id: dict[TransactionalId, LiveTask] = {}
    unknown = {} if doubt is None else {each: doubt for each in ids if may_be_task(each)}
    connectors: frozenset[str] = frozenset()
    group: ConnectGroup | None = None
    named = [app.target.group_id] if app.target.group_id else []
    for group_id in dict.fromkeys([*named, *sorted(groups or ())]):
        prefix = f"{group_id}-"  # for 100,000 ids this is faster than task_of alone
        its_own = (each for each in ids if each.startswith(prefix))
        works = {each: work for each in its_own if (work := task_of(each, group_id)) is not None}
        if not works:
            continue
        from eosctl.fence.running import tasks_of  # most ids belong to no existing group

        waits = not request.unknown_liveness and (groups is None or group_id in groups)  # a forgotten one is not listed
        tasks = tasks_of(_at_group(app, group_id), request, frozenset(works.values()), waits=waits)
        if group_id == app.target.group_id:
            connectors, group = tasks.connectors, tasks.group
        for each, work in works.items():
            if work in tasks.running:
                by_id.setdefault(each, replace(tasks.running[work], group_id=_if_other(app, group_id)))
            elif (problem := tasks.may_run.get(work) or tasks.doubt) is not None:
                unknown[each] = problem
    own = {*connectors, *([request.connector] if request.connector is not None else ())}
    for each, problem in _of_hidden_groups(app, ids, groups or frozenset(), own).items():
        unknown.setdefault(each, problem)
    unknown = {each: problem for each, problem in unknown.items() if each not in by_id}
    nobody = app.target.group_id is None and not groups and any(may_be_task(each) for each in ids)
    problems = tuple(dict.fromkeys(unknown.values())) or ((_NO_GROUP,) if nobody else ())
    return Liveness(by_id, unknown, problems, connectors, group, groups, cluster_id)


def _of_hidden_groups(
    app: App, ids: Sequence[TransactionalId], groups: Collection[str], own: Collection[str]
) -> dict[TransactionalId, Problem]:
    """Return the ids that may belong to tasks of a group that no listing shows, as it may not be described.

    Ids of the group that was named are not among them, if they are of its `own` connectors.
    """
    group_id = app.target.group_id
    alike: defaultdict[str, list[TransactionalId]] = defaultdict(list)  # of the same groups and connectors
    for each in ids:
        if may_be_task(each):
            alike[each.rpartition("-")[0]].append(each)
    named = {head: {*groups_of_task(some[0])} - {*groups, group_id} for head, some in alike.items()}
    for head, some in alike.items():
        if group_id is not None and (work := task_of(some[0], group_id)) is not None and work[0] in own:
            del named[head]
    asked = set[str]().union(*named.values())
    if not asked:
        return {}
    try:
        with app.transactions() as admin:
            answers = admin.describe_groups(asked)
    except EosctlError as error:
        found = dict.fromkeys((head for head, names in named.items() if names), _groups_unknown(error))
    else:
        hidden = {name: answer for name, answer in answers.items() if isinstance(answer, EosctlError)}
        seen = {head: names & hidden.keys() for head, names in named.items()}
        found = {head: _may_run_hidden(min(names), hidden) for head, names in seen.items() if names}
    return {each: problem for head, problem in found.items() for each in alike[head]}


def _may_run_hidden(group_id: str, hidden: Mapping[str, EosctlError]) -> Problem:
    why = f"{hidden[group_id].message}; it may run their tasks if it is a Connect group"
    return liveness_unknown(why, f"Grant DESCRIBE on group {group_id}, or name the connector with --connector.")


def _with_part_of_the_time(app: App, request: FenceRequest) -> App:
    """Limit the deadline, so that silent groups leave time to report that, or to fence."""
    part_s = math.ceil(app.deadline.remaining_s() * 5) / 10  # a half, rounded for messages
    part_s = min(part_s, _QUICK_S) if request.unknown_liveness else part_s
    return replace(app, deadline=Deadline.after(part_s, app.clock))


def _at_group(app: App, group_id: str) -> App:
    """Return an `App` for the group; the given URLs are kept only for the group that was named."""
    if group_id == app.target.group_id:
        return app
    return replace(app, target=replace(app.target, group_id=group_id, connect_urls=()))


def _if_other(app: App, group_id: str) -> str | None:
    return None if group_id == app.target.group_id else group_id


_NO_GROUP = liveness_unknown(
    "no Connect group was named, and none can be seen on this Kafka cluster", "Give -g GROUP_ID."
)


def owners_of(app: App, gathered: Gathered, liveness: Liveness) -> Mapping[TransactionalId, Owner]:
    """Return the owner of each id: as given by `--connector`, else as known, else as the id's form suggests."""
    given = {each: owner for each, owner in gathered.connector_of.items() if owner}
    asked = [each for each in gathered.ids if each not in given]
    found = owners_of_ids(
        app, asked, connectors=gathered.connectors, running=liveness.connectors, groups=liveness.groups
    )
    return {**found, **given}
