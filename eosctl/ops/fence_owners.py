"""Whose the ids are that are to be fenced: by what is known of connectors and groups, else by what they look like."""

from __future__ import annotations

from collections.abc import Mapping

from eosctl.core.ids import Owner, leader_transactional_id, may_be_task, owner_of, task_of
from eosctl.ops.absent_group import recorded_connectors
from eosctl.ops.app import App
from eosctl.ops.fence_gather import Gathered
from eosctl.ops.fence_liveness import Liveness, list_connect_groups

_LEADS = leader_transactional_id("")


def owners_of(app: App, gathered: Gathered, liveness: Liveness) -> Mapping[str, Owner]:
    """The owner of each id: what `--connector` said, else what is known, else what it looks like.

    Every task id of a group `connect-cluster`, the name that many distributions give, looks like a leader's id too.
    """
    group_id, given, ids = app.target.group_id, gathered.connector_of, gathered.ids
    owners = {each: given.get(each) or owner_of(each, group_id, gathered.connectors) for each in ids}
    twofold = [each for each in ids if each.startswith(_LEADS) and each not in given and may_be_task(each)]
    if not twofold:
        return owners
    groups = liveness.groups if liveness.groups is not None else list_connect_groups(app)[0]
    connectors = gathered.connectors | liveness.connectors
    if groups is None or any(each.removeprefix(_LEADS) in groups for each in twofold):
        connectors |= recorded_connectors(app) or frozenset()
    for each in twofold:
        readers = (group for group in (group_id, *sorted(groups or ())) if group and task_of(each, group))
        if (reader := next(readers, None)) is not None:
            known = connectors if reader == group_id else frozenset()
            owners[each] = owner_of(each, reader, known, groups=groups)
    return owners
