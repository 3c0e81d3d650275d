"""One connector on two Connect clusters: what doctor says of those of a group and of the profiles given beside it.

Two that run with one config read one source, and write every record twice. Who runs a task is decided by
`connectors/holders.py`; a PAUSED task has a producer, and reads nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum, unique

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.checks import codes
from eosctl.codes import Code
from eosctl.connectors.dedicated import TOPIC_PROPERTY
from eosctl.connectors.holders import Holding, TaskHolders, holders_of_shown, shown_connectors
from eosctl.core.findings import ERROR, INFO, WARNING, Finding
from eosctl.core.java.properties import is_reference
from eosctl.core.offsets.views import connector_keys, live
from eosctl.core.wording import counted
from eosctl.core.workers.connector_entry import ConnectorEntry
from eosctl.errors import EosctlError, InterruptedByUserError
from eosctl.foreign import arguments, shell_words
from eosctl.offsets.stores.gather import gather_stores

SourcePartitions = Mapping[str, frozenset[str]]
"""Connector -> the source partitions that it has offsets of."""
_OWN_SETTINGS = frozenset({"name", TOPIC_PROPERTY})
_CLIENTS = ("producer.override.", "consumer.override.", "admin.override.")
_HERE = re.compile(r"localhost|127\.0\.0\.1|\[::1\]")
_CLASS, _NOT_READING = "connector.class", "PAUSED"


@unique
class SourceReading(Enum):
    """Whether a connector's tasks read their source."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class ClusterSide(Struct, frozen=True):
    """The source connectors of a group, and who holds their tasks; `profile` is None for the command's own group."""

    profile: str | None
    group_id: str | None
    cluster_id: str | None
    holders: TaskHolders

    @property
    def sources(self) -> Mapping[str, ConnectorEntry]:
        """The source connectors, by name."""
        return {name: entry for name, entry in self.holders.connectors.items() if entry.type == "source"}

    def reading(self, connector: str) -> SourceReading:
        """Decide whether a connector's tasks read, as far as the workers and members report."""
        tasks = [task for task in self.holders.tasks.values() if task.connector == connector]
        at_work = [task for task in tasks if task.status is None or task.status.state != _NOT_READING]
        if any(task.holding is Holding.RUNS for task in at_work):
            return SourceReading.YES
        is_unknown = self.holders.doubt is not None or self.holders.silence is not None
        if is_unknown or any(task.holding in (Holding.HELD, Holding.UNKNOWN) for task in at_work):
            return SourceReading.UNKNOWN
        return SourceReading.NO

    def stop(self, connector: str) -> str:
        """Return the command that stops a connector here."""
        at = () if self.profile is None else ("-p", self.profile)
        return f"`{shell_words('eosctl', 'connectors', 'stop', *at)} {arguments(connector)}`"

    def __str__(self) -> str:
        group = f"group {self.group_id or 'unknown'}"
        return group if self.profile is None else f"{group} (profile {self.profile})"


class Pair(Struct, frozen=True):
    """A source connector of one side and one of the other that may read one source.

    `shared` is the number of source partitions that both have offsets of; None where that is not known, or where one
    has none.
    """

    name: str
    other: str
    config: Mapping[str, str]
    other_config: Mapping[str, str]
    shared: int | None

    def same_config(self) -> bool:
        """Decide whether they are configured alike, but for their names and clients."""
        return _what_it_reads(self.config) == _what_it_reads(self.other_config)

    def is_certain(self) -> bool:
        """Decide whether they read one source for certain.

        References, and a name of the worker's own machine, mean something else to each worker.
        """
        values = _what_it_reads(self.config).values()
        return self.same_config() and not any(is_reference(value) or _HERE.search(value) for value in values)

    def is_related(self) -> bool:
        """Decide whether they may be one connector: the same name or config."""
        return self.name == self.other or self.same_config()


def _what_it_reads(config: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value for name, value in config.items() if name not in _OWN_SETTINGS and not name.startswith(_CLIENTS)
    }


def pairs_of(
    here: Mapping[str, ConnectorEntry],
    there: Mapping[str, ConnectorEntry],
    offsets_here: SourcePartitions | None,
    offsets_there: SourcePartitions | None,
) -> Iterator[Pair]:
    """Yield the connectors of both sides with the same name, config or source partitions; each at most once a pair."""
    for name, entry in sorted(here.items()):
        for other, other_entry in sorted(there.items()):
            shared = _shared(offsets_here, offsets_there, name, other)
            pair = Pair(name, other, entry.config, other_entry.config, shared)
            same_class = entry.config.get(_CLASS) == other_entry.config.get(_CLASS)
            if pair.is_related() or (shared and same_class):
                yield pair


def _shared(here: SourcePartitions | None, there: SourcePartitions | None, name: str, other: str) -> int | None:
    mine, theirs = ((each or {}).get(key) for each, key in ((here, name), (there, other)))
    return len(mine & theirs) if mine and theirs else None


def judge_pair(pair: Pair, here: ClusterSide, there: ClusterSide) -> Finding | None:
    """Return the finding about two connectors; None for two that rest, or have other configs and source partitions."""
    states = (here.reading(pair.name), there.reading(pair.other))
    name, other = (f"connector {each}" for each in (pair.name, pair.other))
    places = f"{name} in {here} and {other} in {there}" if name != other else f"{name} in {here} and in {there}"
    fix = f"Stop one of them: {here.stop(pair.name)} or {there.stop(pair.other)}."
    evidence: dict[str, object] = {
        "profile": there.profile, "group_id": there.group_id, "kafka_cluster_id": there.cluster_id,
        "connector": pair.other, "same_config": pair.same_config(), "shared_source_partitions": pair.shared,
    }  # fmt: skip

    def made(code: Code, severity: str, message: str, *, fix: str = fix, certain: bool = True) -> Finding:
        return Finding(code, severity, pair.name, f"{places}: {message}", fix, evidence, certain=certain)

    if pair.shared == 0 and not pair.same_config():
        return None
    if states == (SourceReading.YES, SourceReading.YES):
        if pair.is_certain():
            message = "both run with the same config, so that both read one source, and write each of its records"
            return made(codes.RUNS_ON_TWO_CLUSTERS, ERROR, message)
        if pair.shared:
            source = counted(pair.shared, "source partition")
            severity = WARNING if pair.is_related() else INFO
            return made(
                codes.MAY_RUN_ON_TWO_CLUSTERS, severity, f"both run, and have offsets of the same {source}: it is one "
                "source if their configs lead to the same one",
            )  # fmt: skip
        message = "both run; whether they read one source is not known: " + (
            "references and localhost in their config mean something else to each worker"
            if pair.same_config()
            else "their configs differ, and their source partitions can't be compared"
        )
        return made(codes.MAY_RUN_ON_TWO_CLUSTERS, WARNING, message, certain=False)
    if not pair.is_related() or states.count(SourceReading.NO) == len(states):
        return None
    if SourceReading.NO in states and SourceReading.YES in states:
        rests, at = (other, there) if states[1] is SourceReading.NO else (name, here)
        again = f"None if it was moved. Do not start {rests} in {at} again while the other one runs; delete it there "
        return made(
            codes.ON_TWO_CLUSTERS, INFO, f"one runs, {rests} in {at} does not", fix=f"{again}once it is not needed."
        )
    return made(
        codes.MAY_RUN_ON_TWO_CLUSTERS, WARNING, "whether both run is not known: a task may be running that REST does "
        "not show", certain=False,
    )  # fmt: skip


def findings_on_two_clusters(app: App, others: Mapping[str, App]) -> list[Finding]:
    """Look at the group and at those of the profiles; what can't be asked there is a finding, too."""
    if not others:
        return []
    try:
        here = _look(app, None)
    except InterruptedByUserError:
        raise
    except EosctlError as exc:
        return [_unseen(profile, exc.message, exc.hint) for profile in others]
    found = list[Finding]()
    for profile, other in others.items():
        try:
            found += _compared(app, here, replace(other, deadline=app.deadline.half()), profile)
        except InterruptedByUserError:
            raise
        except EosctlError as exc:
            found.append(_unseen(profile, exc.message, exc.hint))
    return found


def _compared(app: App, here: ClusterSide, other: App, profile: str) -> Iterable[Finding]:
    there = _look(other, profile)
    if (here.cluster_id, here.group_id) == (there.cluster_id, there.group_id):
        return [_unseen(profile, "it leads to this very group", "Name the profile of another group.")]
    offsets = [_source_partitions(each, side.sources) for each, side in ((app, here), (other, there))]
    findings = (judge_pair(pair, here, there) for pair in pairs_of(here.sources, there.sources, *offsets))
    return [each for each in findings if each is not None]


def _look(app: App, profile: str | None) -> ClusterSide:
    """Ask the workers for their connectors, and the members for their tasks; raise the error of workers without one."""
    shown, silence = shown_connectors(app)
    if silence is not None:
        raise silence
    sources = [name for name, entry in shown.items() if entry.type == "source"]
    cluster_id = None
    if app.target.client is not None:
        with app.transactions() as admin:
            cluster_id = admin.cluster_id()
    return ClusterSide(profile, app.target.group_id, cluster_id, holders_of_shown(app, sources, shown))


def _source_partitions(app: App, connectors: Collection[str]) -> SourcePartitions | None:
    """Return the source partitions that connectors have live offsets of; None where they can't be read."""
    if app.target.client is None or not connectors:
        return None
    try:
        found = gather_stores(app, connectors=tuple(connectors))
    except InterruptedByUserError:
        raise
    except EosctlError:
        return None
    return {
        name: frozenset(
            json.dumps(key.partition, sort_keys=True)
            for store in found.rows(name).values()
            for key in connector_keys([store], name)
            if live(store.records.get(key.raw)) is not None
        )
        for name in connectors
    }


def _unseen(profile: str, why: str, hint: str | None) -> Finding:
    message = f"whether a connector runs in profile {profile}, too, is not known: {why}"
    return Finding(codes.OTHER_GROUP_UNSEEN, WARNING, profile, message, hint or "See the message.", certain=False)
