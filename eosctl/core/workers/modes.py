"""The order in which workers change their exactly-once mode, and the worker files of a dedicated MirrorMaker. Pure.

The order is a state machine from modes to passes and steps. Nothing in Connect enforces it. `preparing` everywhere
before `enabled` anywhere, and the same on the way back: no worker may run exactly-once tasks while the leader may be
one that writes without transactions (KIP-618).

A dedicated MirrorMaker's file (mm2.properties) is split into the worker files that Kafka makes of it. As
`MirrorMakerConfig` (Kafka 4.3) does it, there is one for each flow: a worker has the properties of its target cluster's
alias, and of those without an alias only the few that are passed on. The mode is none of these: it is
`TARGET.exactly.once.source.support`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum, unique

from msgspec import Struct

from eosctl.core.java.properties import Properties, is_reference, split_list, trimmed
from eosctl.errors import UsageError


@unique
class Mode(StrEnum):
    """The observed `exactly.once.source.support` of a worker; `not_enabled` is preparing or disabled."""

    ABSENT = "absent"
    OLD_VERSION = "old_version"
    DISABLED = "disabled"
    PREPARING = "preparing"
    ENABLED = "enabled"
    NOT_ENABLED = "not_enabled"
    UNKNOWN = "unknown"
    UNREACHABLE = "unreachable"


TARGETS = (Mode.DISABLED, Mode.PREPARING, Mode.ENABLED)
_ANY = frozenset(TARGETS)
POSSIBLE = {
    Mode.ABSENT: _ANY,
    Mode.OLD_VERSION: frozenset({Mode.DISABLED}),
    Mode.DISABLED: frozenset({Mode.DISABLED}),
    Mode.PREPARING: frozenset({Mode.PREPARING}),
    Mode.ENABLED: frozenset({Mode.ENABLED}),
    Mode.NOT_ENABLED: frozenset({Mode.DISABLED, Mode.PREPARING}),
    Mode.UNKNOWN: _ANY,
    Mode.UNREACHABLE: _ANY,
}


CONNECT_SETTING = "exactly.once.source.support"
MIRROR_MAKER_SETTING = f"TARGET.{CONNECT_SETTING}"
"""The setting's name for a MirrorMaker; TARGET is replaced by the alias of the target cluster."""


class UpgradeWorker(Struct, frozen=True):
    """One worker as observed; `name` is its URL, or its file where it is absent from the group.

    `setting` is the mode's property in its file. Not `confirmed`: only a file shows the mode, no running worker.
    `doubt` is why the worker that responds at its URL may be another one.
    """

    name: str
    mode: Mode
    leader: bool = False
    version: str | None = None
    health: str | None = None
    evidence: tuple[str, ...] = ()
    setting: str = CONNECT_SETTING
    confirmed: bool = True
    doubt: str = ""

    @property
    def possible(self) -> frozenset[Mode]:
        """The modes in which it may run."""
        return POSSIBLE[self.mode] if self.confirmed else _ANY


class WorkerStep(Struct, frozen=True):
    """The actions for one worker; `gates` must hold before the next step starts."""

    worker: str
    actions: tuple[str, ...]
    gates: tuple[str, ...]


class Pass(Struct, frozen=True):
    """One rolling restart that brings workers to `mode`; `barrier` must hold before its first step."""

    mode: Mode
    barrier: str
    steps: tuple[WorkerStep, ...]


_STEP_GATES = ("worker_healthy", "members_known", "group_stable", "connectors_healthy", "mode_proven")


def plan_passes(workers: Sequence[UpgradeWorker], target: Mode) -> tuple[Pass, ...]:
    """Return the passes that bring every worker to `target`, without steps for workers that certainly have that mode.

    The current leader goes last in each pass; leadership moves when it restarts, so it must be looked up again.
    """
    if target is Mode.PREPARING:
        return _passes([(Mode.PREPARING, _not_certainly(workers, Mode.PREPARING))])
    if target is Mode.ENABLED:
        first = [worker for worker in workers if Mode.DISABLED in worker.possible]
    else:
        first = [w for w in workers if Mode.ENABLED in w.possible and w.mode is not Mode.ABSENT]
    return _passes([(Mode.PREPARING, first), (target, _not_certainly(workers, target))])


def _not_certainly(workers: Sequence[UpgradeWorker], mode: Mode) -> list[UpgradeWorker]:
    return [worker for worker in workers if worker.possible != {mode}]


def _passes(wanted: Sequence[tuple[Mode, list[UpgradeWorker]]]) -> tuple[Pass, ...]:
    return tuple(
        Pass(mode, _BARRIERS[mode], tuple(_step(worker, mode) for worker in _leader_last(workers)))
        for mode, workers in wanted
        if workers
    )


_BARRIERS = {
    Mode.PREPARING: "every member of the group is known, and no other worker can join",
    Mode.ENABLED: "every worker is proven to be preparing or enabled",
    Mode.DISABLED: "no worker is enabled any more, and the aborted records are repaired",
}


def _leader_last(workers: Sequence[UpgradeWorker]) -> list[UpgradeWorker]:
    return sorted(workers, key=lambda worker: (worker.leader, worker.name))


def _step(worker: UpgradeWorker, mode: Mode) -> WorkerStep:
    actions = []
    if worker.mode is Mode.OLD_VERSION and mode is not Mode.DISABLED:
        actions.append("install Kafka Connect 3.3 or newer")
    if worker.mode in (Mode.UNKNOWN, Mode.UNREACHABLE):
        actions.append("find out which mode it runs in: nothing may be assumed of it")
    if worker.leader:
        actions.append("check that it still leads the group; if not, restart the one that does last")
    perhaps_there = worker.mode is Mode.NOT_ENABLED and mode in worker.possible
    unless = " (unless it already runs with it)" if perhaps_there else ""
    actions.append(f"set {worker.setting}={mode.value}{unless}")
    actions.append("start it, when it is wanted" if worker.mode is Mode.ABSENT else "restart it")
    gates = () if worker.mode is Mode.ABSENT else _STEP_GATES
    return WorkerStep(worker.name, tuple(actions), gates)


def downgrade_losses(
    workers: Sequence[UpgradeWorker], target: Mode, *, requiring: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return sentences that state the losses of a downgrade; empty where no worker can be above `target`.

    `requiring` are the connectors whose configs have exactly.once.support=required.
    """
    possible = {mode for worker in workers for mode in worker.possible}
    losses: list[str] = []
    if target is not Mode.ENABLED and Mode.ENABLED in possible:
        losses += [
            "Exactly-once ends with the first worker that is no longer enabled: from then on a crash, or a zombie, "
            "can write records twice.",
            "Workers that are not enabled read aborted records of the config and offsets topics: an aborted offset "
            "skips source records, an aborted connector comes alive. Both must be repaired before the first restart.",
            "Connectors with exactly.once.support=required can no longer be created or changed"
            + (f": here {', '.join(requiring)}." if requiring else "."),
        ]
    if target is Mode.DISABLED and possible & {Mode.PREPARING, Mode.ENABLED}:
        losses += [
            "The leader writes without transactions again: a leader that was replaced is no longer fenced out.",
            "Task-count records stay; when exactly-once comes back they cause one more fencing, which is safe.",
        ]
    return tuple(losses)


def blocking_modes(workers: Sequence[UpgradeWorker], mode: Mode) -> list[str]:
    """Return the reasons why a pass to `mode` may not begin with these workers.

    A worker that is enabled beside one that is, or may be, disabled is never allowed.
    """
    forbidden = {Mode.ENABLED: Mode.DISABLED, Mode.DISABLED: Mode.ENABLED}.get(mode)
    return [
        f"{worker.name} is {worker.mode.value}, so it may be {forbidden.value}"
        for worker in workers
        if forbidden is not None and forbidden in worker.possible
    ]


CLUSTERS = "clusters"
_HEARTBEATS = "emit.heartbeats.enabled"
_PASSED_ON = (
    *("offset.storage", "config.storage", "status.storage", "key.converter", "value.converter", "header.converter"),
    *("task", "worker", "replication.policy", "config.providers"),
)
_CLIENT = ("bootstrap.servers", "security.", "ssl.", "sasl.")
"""Properties without an alias that apply to each cluster (`MirrorClientConfig.CLIENT_CONFIG_DEF`)."""


class Flow(Struct, frozen=True):
    """The copying from one cluster to another, by their aliases: a Connect group of its own at the target's brokers.

    One that is not `enabled` copies no topic; it only emits heartbeats.
    """

    source: str
    target: str
    enabled: bool

    def __str__(self) -> str:
        return f"{self.source}->{self.target}"


def is_mirror_maker_file(properties: Properties) -> bool:
    """Return whether this is the file of a dedicated MirrorMaker rather than of a Connect worker."""
    return CLUSTERS in properties.values


def flows_of(properties: Properties) -> list[Flow]:
    """Return every flow for which MirrorMaker starts a worker (`MirrorMakerConfig.clusterPairs`)."""
    values = {name: trimmed(value) for name, value in properties.values.items()}
    clusters = tuple(dict.fromkeys(split_list(values.get(CLUSTERS, ""))))
    found = []
    for source, target in ((source, target) for source in clusters for target in clusters if source != target):
        enabled = values.get(f"{source}->{target}.enabled", "").lower() == "true"
        heartbeats = values.get(f"{source}->{target}.{_HEARTBEATS}", values.get(_HEARTBEATS, "true"))
        if enabled or heartbeats.lower() == "true":
            found.append(Flow(source, target, enabled))
    return found


def worker_properties_of(properties: Properties, flow: Flow) -> Properties:
    """Return the properties that MirrorMaker passes to the worker of one flow, and the names of the clusters.

    (`MirrorMakerConfig.workerConfig`.) The settings of its three clients that repeat its own are left out.
    """
    own = f"{flow.target}."
    names = {name: name for name in properties.values if name.startswith(_CLIENT)}
    names |= {name.removeprefix(own): name for name in properties.values if name.startswith(own)}
    names |= {name: name for name in properties.values if name.startswith(_PASSED_ON)}
    names[CLUSTERS] = CLUSTERS
    values = {
        "client.id": str(flow),
        "group.id": f"{flow.source}-mm2",
        **{f"{kind}.storage.topic": f"mm2-{label}.{flow.source}.internal" for kind, label in _TOPICS.items()},
        **{name: properties.values[original] for name, original in names.items()},
    }
    lines = {name: properties.lines[original] for name, original in names.items() if original in properties.lines}
    return Properties(properties.source, values, lines)


_TOPICS = {"offset": "offsets", "status": "status", "config": "configs"}


def mode_property(flow: Flow) -> str:
    """Return the property that sets the mode of the flow's worker, and of every other worker with the same target."""
    return f"{flow.target}.{CONNECT_SETTING}"


def moved_together(properties: Properties, flow: Flow) -> list[str]:
    """Return the groups of the other flows with the same target: one property sets the mode of all their workers."""
    own = worker_properties_of(properties, flow).values["group.id"]
    others = (each for each in flows_of(properties) if each != flow and each.target == flow.target)
    return sorted({worker_properties_of(properties, each).values["group.id"] for each in others} - {own})


def idle_modes(properties: Properties, flow: Flow) -> Iterator[tuple[str, str]]:
    """Yield property names that seem to set the mode of the flow's worker, each with the one that does."""
    for name in (CONNECT_SETTING, f"{flow}.{CONNECT_SETTING}"):
        if name in properties.values:
            yield name, mode_property(flow)


def choose_flow(properties: Properties, *, group_id: str | None, servers: Sequence[str]) -> Flow:
    """Choose the flow of the given group and brokers, else the only one that copies.

    Raises UsageError if there is none, or several.
    """
    flows = {flow: worker_properties_of(properties, flow).values for flow in flows_of(properties)}
    left = [flow for flow, values in flows.items() if group_id is None or _may_be(values["group.id"], group_id)]
    for preferred in (
        [flow for flow in left if set(servers) & set(split_list(flows[flow].get("bootstrap.servers", "")))],
        [flow for flow in left if flow.enabled],
    ):
        kept = [flow for flow in preferred if flow in left]
        left = kept if len(left) > 1 and kept else left
    if len(left) == 1:
        return left[0]
    what = "several flows" if left else f"no flow of group {group_id}" if group_id and flows else "no flow"
    raise UsageError(
        f"{properties.source} is the file of a dedicated MirrorMaker with {what}{_listed(flows)}",
        hint="Give the group of the flow that is meant with -g, and its target's brokers with -b.",
    )


def _may_be(value: str, group_id: str) -> bool:
    """Return whether a value is the group, or a reference that only the worker can resolve."""
    return trimmed(value) == group_id or is_reference(value)


def _listed(flows: Mapping[Flow, Mapping[str, str]]) -> str:
    texts = [f"{flow} (group {values['group.id']})" for flow, values in flows.items()]
    return f": {', '.join(texts)}" if texts else ""
