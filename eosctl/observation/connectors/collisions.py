"""Transactional ids that are also used outside of the group: the two users fence each other. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from eosctl.core.findings import ERROR, INFO, WARNING, Finding
from eosctl.core.ids import TransactionalId, leader_transactional_id, task_transactional_id
from eosctl.group.observation.id_collisions import rivals
from eosctl.group.observation.rules import OTHER_GROUPS, Observation, ObservedConnector
from eosctl.observation.connectors import codes
from eosctl.task_counts import codes as task_count_codes

_NEEDS_GROUPS = "Needs DESCRIBE on the groups whose names begin like this one's."


def collisions(connector: ObservedConnector, observation: Observation) -> Iterable[Finding]:
    """Find ids of this connector that a task or leader of another group uses, too."""
    if observation.group_id is None or observation.rival_groups is None:
        yield Finding(
            codes.ID_COLLISION_UNKNOWN, WARNING, connector.name,
            f"whether another group has the ids of {connector.name} is not known: "
            f"{observation.why_unseen(OTHER_GROUPS)}",
            _NEEDS_GROUPS, certain=False,
        )  # fmt: skip
        return
    if OTHER_GROUPS in observation.forbidden:
        yield Finding(
            codes.ID_COLLISION_UNKNOWN, INFO, "connectors",
            f"whether groups that one may not see have ids of these connectors is not known: "
            f"{observation.why_unseen(OTHER_GROUPS)}",
            _NEEDS_GROUPS, certain=False,
        )  # fmt: skip
    ids = [task_transactional_id(observation.group_id, connector.name, task) for task in connector.tasks()]
    yield from _with_rivals(connector.name, ids, observation)


def leader_collisions(observation: Observation) -> Iterable[Finding]:
    """Find tasks of other groups that use the id of this group's leader."""
    if observation.group_id is not None:
        yield from _with_rivals("leader", [leader_transactional_id(observation.group_id)], observation)


def _with_rivals(subject: str, ids: Iterable[TransactionalId], observation: Observation) -> Iterable[Finding]:
    """Yield a finding for each other user of one of these ids."""
    for transactional_id in ids:
        for rival, sure in rivals(transactional_id, observation.group_id or "", observation.rival_groups or {}):
            if not sure:
                words = "whether that runs is not known now; if so, the two fence each other"
            elif rival.connector is None:
                words = "the two fence each other"
            else:
                words = "unless that is a sink, the two fence each other"
            yield Finding(
                task_count_codes.ID_COLLISION if sure else codes.ID_COLLISION_POSSIBLE,
                ERROR if sure else WARNING, subject,
                f"{transactional_id} is also the id of {rival}: {words}",
                "Rename the connector, or the group.", {"transactional_id": transactional_id}, certain=sure,
            )  # fmt: skip
