"""The result of one check before a change of the workers' mode, and the checks about workers. Pure.

The checks are about members, versions, modes, and whether the workers' files agree; `gates` has the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from eosctl.codes import Code
from eosctl.core.java.properties import INT_BITS, LONG_BITS, is_reference, java_number
from eosctl.core.versions import HEALTH_SINCE, is_older, kafka_version, shown_version
from eosctl.core.wording import counted
from eosctl.core.workers.modes import CONNECT_SETTING, TARGETS, Mode, UpgradeWorker
from eosctl.group.members import is_node
from eosctl.group.observation.rules import OLDEST_VERSION, Observation

GateStatus = Literal["pass", "fail", "unknown"]


class Gate(Struct, frozen=True):
    """The outcome of one check.

    `guards_data`: to go on without knowing may lose records, or send them twice. `accepted`: the user goes on with it.
    `only_planned`: `upgrade apply` does not have this gate.
    """

    id: Code
    status: GateStatus
    evidence: str
    fix: str = ""
    guards_data: bool = False
    accepted: bool = False
    only_planned: bool = False

    @property
    def stops_apply(self) -> bool:
        """True if no worker may be restarted while the gate has this status."""
        if self.only_planned:
            return False
        return not self.accepted and (self.status == "fail" or (self.status == "unknown" and self.guards_data))

    @property
    def verb(self) -> str:
        """The verb of a sentence about a gate that does not pass."""
        return "fails" if self.status == "fail" else "is unknown"


class GateVerdict(Struct, frozen=True):
    """`failures` make a gate fail, else `unknowns` make it unknown, else it passes with `proof`.

    `fix` is for this case alone, where there is more to say than to everybody whom the gate stops.
    """

    proof: str = ""
    failures: Sequence[str] = ()
    unknowns: Sequence[str] = ()
    fix: str = ""


_TOLD = frozenset({Mode.ENABLED, Mode.NOT_ENABLED, Mode.PREPARING, Mode.DISABLED})
"""Modes that a validation told, which no worker below OLDEST_VERSION and none that still starts can do."""


def _per_worker(observation: Observation, modes: Iterable[Mode], words: str) -> list[str]:
    return [f"{worker.name} {words}" for worker in observation.workers if worker.mode in modes]


def members_known(observation: Observation) -> GateVerdict:
    """Check that each known worker is a member, and that each answers if it has a REST interface."""
    failures = _per_worker(observation, (Mode.ABSENT,), "is not a member of the group")
    failures += _per_worker(observation, (Mode.UNREACHABLE,), "is a member, but its REST interface can't be reached")
    failures += dict.fromkeys(worker.doubt for worker in observation.workers if worker.doubt)
    if not observation.workers:
        failures.append("the group has no members, and no worker was named")
    how = "without a REST interface" if observation.mirror_maker else "every one answers"
    return GateVerdict(f"{counted(len(observation.workers), 'member')}, {how}", failures)


def group_stable(observation: Observation) -> GateVerdict:
    """Check that no rebalance is under way, and that the leader is known."""
    state = observation.group_state
    failures = [] if state == "Stable" else [f"the group is {state}"]
    if state == "Stable" and not any(worker.leader for worker in observation.workers):
        return GateVerdict(unknowns=["the group is Stable, but its leader is not among the workers that are known"])
    return GateVerdict("the group is Stable and its leader is known", failures)


def worker_versions(observation: Observation) -> GateVerdict:
    """Check that each worker runs a Kafka version that has exactly-once sources."""
    failures, unknowns = [], []
    for worker in observation.workers:
        if is_older(worker.version, OLDEST_VERSION):
            failures.append(f"{worker.name} runs {shown_version(str(worker.version))}")
        elif worker.version is None and worker.mode is not Mode.ABSENT:
            unknowns.append(f"the version of {worker.name} is not known")
        elif worker.version and kafka_version(worker.version) is None and worker.mode not in _TOLD:
            unknowns.append(f"{worker.name} runs {shown_version(worker.version)}")
    if observation.mirror_maker and unknowns:
        unknowns.append("no REST interface reports it, nor does any of its connectors (Kafka 4.1 and newer)")
    versions = sorted({shown_version(worker.version) for worker in observation.workers if worker.version})
    return GateVerdict(f"versions: {', '.join(versions)}", failures, unknowns)


def worker_health(observation: Observation) -> GateVerdict:
    """Check that each worker reports that it is healthy, if its Kafka version reports health."""
    if observation.mirror_maker:
        return GateVerdict("every worker is a member of the group; without REST no more can be seen of its health")
    failures = [f"{w.name} is {w.health}" for w in observation.workers if w.health in ("starting", "unhealthy")]
    there = [worker for worker in observation.workers if worker.mode is not Mode.ABSENT]
    silent = [w for w in there if w.health in (None, "unknown", "unreachable")]
    mute = [f"{w.name}, which runs {shown_version(str(w.version))}" for w in silent if _has_no_health(w)]
    unknowns = [f"{w.name} does not report its health" for w in silent if not _has_no_health(w)]
    proof = f"every worker answers; Kafka reports health from 3.9 on, so not {', '.join(mute)}"
    return GateVerdict(proof if mute else "every worker is healthy", failures, unknowns)


def _has_no_health(worker: UpgradeWorker) -> bool:
    """Decide whether the worker is too old for GET /health (KIP-1017), so that only an answer can be expected.

    One of an unknown version that has no such path is as old, if it answers what a starting worker does not.
    """
    if worker.health != "unknown" or worker.version is None:
        return False
    is_unknown = kafka_version(worker.version) is None
    return worker.mode in _TOLD if is_unknown else is_older(worker.version, HEALTH_SINCE)


def internal_rest(observation: Observation) -> GateVerdict:
    """Check that followers can ask the leader over REST to fence, as exactly-once tasks do (KIP-618, KIP-710)."""
    mute = [worker.name for worker in observation.workers if observation.mirror_maker and is_node(worker.name)]
    if len(mute) <= 1:
        return GateVerdict("followers reach their leader" if not mute else "there is no follower")
    text = f"{', '.join(mute)} reach no leader: exactly-once tasks of all but the leader fail"
    return GateVerdict(failures=[f"{text} (their REST interface is off)"])


def modes_proven(observation: Observation) -> GateVerdict:
    """Check that the mode of each worker is known, as far as it matters on this way."""
    unproven = [w for w in observation.workers if len(w.possible) > 1]
    # On the way up a worker that is disabled or preparing gets the first step anyway: it need not be distinguished.
    harmless = observation.target is Mode.ENABLED
    unknowns = [_mode_text(w) for w in unproven if not (harmless and w.mode is Mode.NOT_ENABLED)]
    return GateVerdict("; ".join(_mode_text(w) for w in observation.workers) or "no workers", (), unknowns)


def _mode_text(worker: UpgradeWorker) -> str:
    evidence = f" ({', '.join(worker.evidence)})" if worker.evidence else ""
    verb = "is" if worker.confirmed else "may be"
    return f"{worker.name} {verb} {worker.mode.value}{evidence}"


def no_mixed_modes(observation: Observation) -> GateVerdict:
    """Check that no worker is enabled beside one that is, or may be, disabled."""
    enabled = [worker.name for worker in observation.workers if worker.mode is Mode.ENABLED]
    disabled = [w.name for w in observation.workers if w.mode in (Mode.DISABLED, Mode.OLD_VERSION)]
    unproven = [w.name for w in observation.workers if w.mode in (Mode.NOT_ENABLED, Mode.UNKNOWN, Mode.UNREACHABLE)]
    if enabled and disabled:
        text = f"{', '.join(enabled)} enabled beside {', '.join(disabled)}: nothing is exactly-once now"
        return GateVerdict(failures=[text])
    if enabled and unproven:
        text = f"{', '.join(enabled)} enabled, and {', '.join(unproven)} may be disabled"
        return GateVerdict(unknowns=[text])
    return GateVerdict("no enabled worker beside a disabled one")


_SHARED = ("group.id", "status.storage.topic")
_ELSEWHERE = {
    "config.storage.topic": "what that worker runs comes from there, and it never catches up with the group",
    "offset.storage.topic": "source connectors that run on that worker go on from other offsets",
}
"""What it means that a worker has another topic than its group; nobody but its file shows which it has."""


def worker_files(observation: Observation) -> GateVerdict:
    """Check that the workers' files agree on the properties that a group shares, and that their modes exist."""
    failures, unknowns = _other_topics(observation)
    for name in _SHARED:
        values = {file.properties.get(name) for file in observation.files}
        told = {value for value in values if value is None or not is_reference(value)}
        if len(told) > 1:
            failures.append(f"{name} differs: {', '.join(sorted(str(value) for value in values))}")
        elif len(values) > 1:
            unknowns.append(f"{name}: only workers can resolve {', '.join(sorted(map(str, values - told)))}")
    for file in observation.files:
        mode = file.properties.get(CONNECT_SETTING, Mode.DISABLED).lower()
        if mode not in TARGETS and not is_reference(mode):
            failures.append(f"{file.path}: {CONNECT_SETTING}={mode}")
    agreeing = counted(len(observation.files), "worker file agrees", "worker files agree")
    return GateVerdict(agreeing if observation.files else "no worker file was given", failures, unknowns)


def _other_topics(observation: Observation) -> tuple[list[str], list[str]]:
    """Return the files that name other config or offsets topics than the group's, and those that use a reference."""
    failures, unknowns = [], []
    ours = {"config.storage.topic": observation.config_topic, "offset.storage.topic": observation.offset_topic}
    for name, topic in ours.items():
        for file in observation.files:
            value = file.properties.get(name, topic)
            if value != topic and is_reference(value):
                unknowns.append(f"{file.path}: {name}: only the worker can resolve {value}")
            elif value != topic:
                failures.append(f"{file.path}: {name}={value}, and the group has {topic}: {_ELSEWHERE[name]}")
    return failures, unknowns


_CONNECTION_TIMES = {"connections.max.idle.ms": (540_000, LONG_BITS), "rebalance.timeout.ms": (60_000, INT_BITS)}
"""Their defaults (`DistributedConfig`, 3.3 to 4.4); workers of 4.4 log a warning where the first one is lower."""


def idle_connections(observation: Observation) -> GateVerdict:
    """Check that no worker's connection to the coordinator may end while the worker waits for others to join."""
    failures, unknowns = [], []
    for file in observation.files:
        texts = {name: file.properties.get(name, str(default)) for name, (default, _bits) in _CONNECTION_TIMES.items()}
        numbers = [java_number(text, bits=_CONNECTION_TIMES[name][1]) for name, text in texts.items()]
        told = ", ".join(f"{name}={text}" for name, text in texts.items())
        idle_ms, rebalance_ms = numbers
        if idle_ms is None or rebalance_ms is None:
            unknowns.append(f"{file.path}: {told}: not both are numbers that can be read here")
        elif 0 <= idle_ms < rebalance_ms:
            failures.append(f"{file.path}: {told}: a rebalance may last longer than its connection")
    enough = counted(len(observation.files), "worker file keeps", "worker files keep")
    proof = f"{enough} the connection for a rebalance" if observation.files else "no worker file was given"
    return GateVerdict(proof, failures, unknowns)
