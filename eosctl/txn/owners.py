"""Whose transactional ids are: by what is known of connectors and groups, else by what they look like."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from eosctl.app import App
from eosctl.core.ids import Owner, TransactionalId, leader_transactional_id, may_be_task, owner_of, task_of
from eosctl.group.listing import list_connect_groups

_LEADS = leader_transactional_id("")


def owners_of_ids(
    app: App,
    ids: Collection[TransactionalId],
    *,
    connectors: frozenset[str] = frozenset(),
    running: frozenset[str] = frozenset(),
    groups: frozenset[str] | None = None,
) -> Mapping[TransactionalId, Owner]:
    """The owner of each id; `connectors` are all that the group is known to have, `running` some of them.

    Every task id of a group `connect-cluster`, the name that many distributions give, looks like a leader's id too:
    for such ids the Connect `groups` are asked for, where the caller does not know them, and the config topic is read
    where that leaves it open.
    """
    group_id = app.target.group_id
    owners = {each: owner_of(each, group_id, connectors) for each in ids}
    twofold = [each for each in ids if each.startswith(_LEADS) and may_be_task(each)]
    if not twofold:
        return owners
    if groups is None:
        groups = list_connect_groups(app)[0]
    known = connectors | running
    if groups is None or any(each.removeprefix(_LEADS) in groups for each in twofold):
        from eosctl.group.absent import recorded_of  # most ids read one way only

        recorded = recorded_of(app)
        known |= frozenset(recorded.connectors if recorded else ())
    in_order = list(dict.fromkeys(filter(None, (group_id, *sorted(groups or ())))))
    for each in twofold:
        reader = next((group for group in in_order if task_of(each, group)), None)
        if reader is not None:
            owners[each] = owner_of(each, reader, known if reader == group_id else frozenset(), groups=groups)
    return owners
