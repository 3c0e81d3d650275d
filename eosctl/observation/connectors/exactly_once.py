"""Decides whether each task of a source connector is exactly-once, and finds what exactly-once does to its connector.

A task is judged by its worker's mode, then by its id. A worker in another mode than enabled runs no task with
transactions, whatever the brokers still know: they keep a transactional id for seven days after its last use
(transactional.id.expiration.ms).

If a connector's config names Kafka brokers of its own, its offsets move there. An exactly-once task commits its offsets
where its producer writes, in a topic named like the worker's unless the config names one
(`Worker.offsetStoreForExactlyOnceSourceTask`). It reads them with its consumer, and finds their end with its admin
client; missing offsets are not taken from the global topic. Judging that effect is pure.

Transactional ids that are also used outside of the group are found, without I/O: the two users fence each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from msgspec import Struct

from eosctl.core.clients.own_brokers import CLUSTER_PROPERTY
from eosctl.core.findings import ERROR, INFO, WARNING, Finding
from eosctl.core.ids import TransactionalId, leader_transactional_id, task_transactional_id
from eosctl.core.wording import counted
from eosctl.core.workers.modes import Mode, UpgradeWorker
from eosctl.foreign import arguments, shell_word
from eosctl.group.modes import PROPERTY
from eosctl.group.observation.rules import OTHER_GROUPS, Observation, ObservedConnector, OwnCluster, rivals
from eosctl.observation.connectors import codes
from eosctl.task_counts import codes as task_count_codes

IDS_KEPT_MS = 7 * 24 * 3_600_000
"""Brokers' default of transactional.id.expiration.ms, after which they forget an unused id."""


class TaskVerdict(Struct, frozen=True):
    """The verdict on a task, None if unknown; `why` is a clause, and `fix` the remedy."""

    exactly_once: bool | None
    why: str = ""
    fix: str = ""


_UPGRADE = "`eosctl upgrade plan --to enabled` has the way to exactly-once."
_NEEDS_MODES = "`eosctl workers probe`; -u and -w name the workers and their files."
YES = TaskVerdict(exactly_once=True)


def task_verdict(connector: ObservedConnector, task: int, observation: Observation) -> TaskVerdict:
    """Decide whether a task of a source connector is exactly-once."""
    by_worker = _verdict_by_worker(connector, task, observation)
    return _verdict_by_id(connector, task, observation) if by_worker.exactly_once else by_worker


def _verdict_by_worker(connector: ObservedConnector, task: int, observation: Observation) -> TaskVerdict:
    """Judge by the mode of the worker that runs it; if that is unknown, all workers must have the same mode."""
    if observation.mirror_maker:
        return YES  # no worker of a dedicated MirrorMaker says its mode: its ids are all that there is
    members = [worker for worker in observation.workers if worker.mode is not Mode.ABSENT]
    place = connector.worker_of(f"task {task}")
    at = [worker for worker in members if place is not None and urlsplit(worker.name).netloc == place]
    verdicts = {_of_mode(worker) for worker in (members if place is None else at)}
    if len(verdicts) == 1:
        return verdicts.pop()
    certain = {each.exactly_once for each in verdicts}
    if certain == {False}:
        return TaskVerdict(False, "no worker of the group is enabled", _UPGRADE)
    return TaskVerdict(None, f"{place or 'its worker'} is not among the workers whose mode is known", _NEEDS_MODES)


def _of_mode(worker: UpgradeWorker) -> TaskVerdict:
    if worker.possible == {Mode.ENABLED}:
        return YES
    if Mode.ENABLED in worker.possible:
        return TaskVerdict(None, f"the mode of {worker.name} is not known", _NEEDS_MODES)
    return TaskVerdict(False, f"{worker.name} is {worker.mode}", _UPGRADE)


def _verdict_by_id(connector: ObservedConnector, task: int, observation: Observation) -> TaskVerdict:
    """Judge by its transactional id: an exactly-once task has one from its start on, until it is idle for long."""
    unseen = ids_unseen(connector, observation)
    needs = "Needs -b, -g, and DESCRIBE on the transactional ids."
    if observation.unknown_ids is None or observation.group_id is None or unseen:
        return TaskVerdict(None, unseen or observation.why_unseen("transactions"), needs)
    transactional_id = task_transactional_id(observation.group_id, connector.name, task)
    if connector.tasks().get(task) != "RUNNING" or transactional_id not in observation.unknown_ids:
        return YES
    why = f"no coordinator knows {transactional_id}"
    again = f"`eosctl connectors restart {arguments(connector.name)}`: an exactly-once task has its id again at once."
    if observation.task_set_age_ms(connector.name) is None:
        return TaskVerdict(
            None, f"{why}, and how old its task set is is not known", f"Grant READ on the config topic; {again}"
        )
    if not is_forgotten_by_now(connector.name, observation):
        return TaskVerdict(False, why, f"See `eosctl workers probe`, and {again}")
    if observation.mirror_maker:
        return TaskVerdict(None, f"{why}, as of a task that was idle for a week", "Look again when it has copied.")
    return YES  # it runs on an enabled worker, and was idle for so long as brokers keep ids


def is_forgotten_by_now(connector: str, observation: Observation) -> bool:
    """Decide whether the tasks are so old that brokers may have forgotten the ids of idle ones."""
    age_ms = observation.task_set_age_ms(connector)
    return age_ms is not None and age_ms >= IDS_KEPT_MS


def ids_unseen(connector: ObservedConnector, observation: Observation) -> str:
    """Return why the ids of a connector with brokers of its own could not be looked at there; empty for all others."""
    seen = observation.own_clusters.get(connector.name)
    return seen.ids_unseen if seen is not None else ""


def requires_support(connector: ObservedConnector) -> bool:
    """Decide whether Connect refuses the connector without exactly-once support; `requested`, the default, does not."""
    return connector.config.get(PROPERTY, "").strip().lower() == "required"


def is_in_use(observation: Observation) -> bool:
    """Decide whether a worker is enabled; for a dedicated MirrorMaker, by its task-count records.

    Only enabled leaders write them (KIP-618), before any task starts.
    """
    if any(worker.mode is Mode.ENABLED for worker in observation.workers):
        return True
    state = observation.config_state
    recorded = () if state is None else [each.task_count_record for each in state.connectors.values()]
    is_open = observation.mirror_maker and any(Mode.ENABLED in worker.possible for worker in observation.workers)
    return is_open and (state is None or any(each is not None for each in recorded))


def task_verdicts(connector: ObservedConnector, observation: Observation) -> dict[int, TaskVerdict]:
    """Return the verdicts on all tasks that a worker has."""
    tasks = sorted(task for task, state in connector.tasks().items() if state != "UNASSIGNED")
    return {task: task_verdict(connector, task, observation) for task in tasks}


def task_audit(connector: ObservedConnector, observation: Observation) -> Iterable[Finding]:
    """Return a finding for each task that is not exactly-once, and one for all tasks of unknown verdict."""
    verdicts = task_verdicts(connector, observation)
    for task, verdict in verdicts.items():
        if verdict.exactly_once is False:
            yield _not_exactly_once(connector, task, verdict, observation)
    unknown = {task: verdict for task, verdict in verdicts.items() if verdict.exactly_once is None}
    if unknown:
        which = f"tasks {', '.join(map(str, unknown))}" if len(unknown) < len(verdicts) else "the tasks"
        why = "; ".join(dict.fromkeys(each.why for each in unknown.values()))
        yield Finding(
            codes.TASK_AUDIT_UNKNOWN, WARNING, connector.name,
            f"whether {which} of {connector.name} are exactly-once is not known: {why}",
            " ".join(dict.fromkeys(each.fix for each in unknown.values())), {"tasks": list(unknown)}, certain=False,
        )  # fmt: skip


def _not_exactly_once(
    connector: ObservedConnector, task: int, verdict: TaskVerdict, observation: Observation
) -> Finding:
    """Report an error if exactly-once is used or required; it is information if no worker is enabled."""
    worker, state = connector.worker_of(f"task {task}"), connector.tasks()[task]
    return Finding(
        codes.TASK_NOT_EXACTLY_ONCE, ERROR if is_in_use(observation) or requires_support(connector) else INFO,
        f"{connector.name}/{task}",
        f"{connector.name}/{task} is {state} on {worker or 'a worker'}, and is not exactly-once: {verdict.why}",
        verdict.fix,
        {
            "transactional_id": task_transactional_id(observation.group_id or "", connector.name, task),
            "state": state, "worker": worker,
        },
    )  # fmt: skip


def own_cluster(connector: ObservedConnector, observation: Observation) -> Iterable[Finding]:
    """Find clients of the connector that go to different clusters, and offsets that its tasks would not find there."""
    seen = observation.own_clusters.get(connector.name)
    if seen is None:
        return
    missing = unnamed_clients(connector, observation)
    if missing:
        names = " and ".join(f"{kind}.override.bootstrap.servers" for kind in missing)
        yield Finding(
            codes.CLIENTS_DISAGREE, ERROR, connector.name,
            f"{connector.name} writes to other Kafka brokers ({seen.servers}), and its config has no {names}: an "
            "exactly-once task then looks for its offsets, and Connect for its transactional ids, on two clusters",
            "Give all three, producer.override, consumer.override and admin.override, the same bootstrap.servers.",
            {CLUSTER_PROPERTY: seen.servers},
        )  # fmt: skip
    if seen.topic is not None and "consumer" not in missing and not all_enabled(observation):
        yield from _moves(connector, observation, seen)


def unnamed_clients(connector: ObservedConnector, observation: Observation) -> Sequence[str]:
    """Return the clients, except the producer, for which neither the config nor the workers' files name brokers."""
    return [
        kind
        for kind in ("consumer", "admin")
        if not connector.config.get(f"{kind}.override.bootstrap.servers")
        and not observation.worker_setting(f"{kind}.bootstrap.servers")
    ]


def all_enabled(observation: Observation) -> bool:
    """Decide whether all workers are enabled, so that exactly-once tasks have their offsets in place already."""
    return bool(observation.workers) and all(worker.mode is Mode.ENABLED for worker in observation.workers)


def _moves(connector: ObservedConnector, observation: Observation, seen: OwnCluster) -> Iterable[Finding]:
    where = f"topic {seen.topic} on {seen.servers}"
    first = (
        f"Copy them first: `eosctl offsets switch --connector {shell_word(connector.name)} --to TOPIC` makes a topic "
        "there, fills it, and names it in the config (TOPIC@PROFILE where that refers to secrets)."
    )
    evidence = {"topic": seen.topic, "brokers": seen.servers, "lacking": seen.lacking}
    if seen.lacking is None:
        yield Finding(
            codes.OFFSETS_MOVE_UNKNOWN, WARNING, connector.name,
            f"{connector.name}: with exactly-once its offsets are in {where}; whether they are there is not known: "
            f"{seen.topic_unseen}",
            first, evidence, certain=False,
        )  # fmt: skip
    elif seen.lacking:
        only_here = f"{counted(seen.lacking, 'offset')} of topic {observation.offset_topic} here"
        lacks = (
            f"which lacks {only_here}" if seen.topic_exists else f"which does not exist yet; {only_here} stay behind"
        )
        yield Finding(
            codes.OFFSETS_MOVE, ERROR, connector.name,
            f"{connector.name}: with exactly-once its offsets are in {where}, {lacks}: it would read its source again",
            first, evidence,
        )  # fmt: skip


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
    others = observation.rival_groups or {}
    for transactional_id in ids if others else ():
        for rival, sure in rivals(transactional_id, observation.group_id or "", others):
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
