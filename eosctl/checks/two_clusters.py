"""One connector on two Connect clusters: what doctor says of those of a group and of the profiles given beside it.

Two that run with one config read one source, and write every record twice: where the config names the source's hosts,
and these names mean the same everywhere. A task runs for certain where REST shows it RUNNING at a member of the group
that holds it (`connectors/holders.py`); a PAUSED task has a producer, and reads nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum, unique
from ipaddress import ip_address

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.checks import codes
from eosctl.codes import Code
from eosctl.connectors.dedicated import TOPIC_PROPERTY
from eosctl.connectors.holders import HeldTask, Holding, TaskHolders, holders_of_shown, shown_connectors
from eosctl.core.configs.records import PROPERTY
from eosctl.core.findings import ERROR, INFO, WARNING, Finding
from eosctl.core.java.properties import is_reference
from eosctl.core.offsets.views import connector_keys, live
from eosctl.core.wording import counted
from eosctl.core.workers.connector_entry import ConnectorEntry
from eosctl.errors import EosctlError, InterruptedByUserError, RefusedError
from eosctl.foreign import arguments, shell_words
from eosctl.group.gather import worker_id_of
from eosctl.move.journal import Moves, journal_of_moves, read_moves
from eosctl.offsets.history.config_changes import is_connects_own
from eosctl.offsets.stores.gather import OffsetStores, gather_stores

SourcePartitions = Mapping[str, frozenset[str]]
"""Connector -> the source partitions that it has offsets of."""
_OWN_SETTINGS = frozenset({"name", TOPIC_PROPERTY})
_CLIENTS = ("producer.override.", "consumer.override.", "admin.override.")
_NOT_THE_SOURCE = ("schema.history.internal.", "database.history.", "signal.")
"""The settings of Debezium's own topics."""
_HOST_PROPERTY = re.compile(r"(?:^|[._-])(?:host|hostname|server|address|url|uri|endpoint|broker)e?s?$", re.IGNORECASE)
_AUTHORITY = re.compile(r"//(?:[^/@?;\s]*@)?([^/?;\s]*)")
_HOST_NAME = re.compile(r"(?:[a-z0-9_-]+\.){2,}([a-z][a-z0-9-]*)\.?", re.IGNORECASE)
_LOCAL_DOMAINS = frozenset({"local", "localdomain", "localhost", "internal", "intranet", "lan", "home", "corp", "svc"})
_READS = {"RUNNING": True, "PAUSED": False}
_RUNNING = "RUNNING"


@unique
class SourceReading(Enum):
    """Whether a connector's tasks read their source."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class ClusterSide(Struct, frozen=True):
    """The source connectors of a group, and who holds their tasks; `profile` is None for the command's own group."""

    app: App
    profile: str | None
    group_id: str
    cluster_id: str
    holders: TaskHolders

    @property
    def sources(self) -> Mapping[str, ConnectorEntry]:
        """The connectors that are no sinks, by name; a worker does not know the type of one whose plugin it lacks."""
        return {name: entry for name, entry in self.holders.connectors.items() if entry.type != "sink"}

    def reading(self, connector: str) -> SourceReading:
        """Decide whether a connector's tasks read: what REST shows, the members must confirm."""
        tasks = [_task_reads(task) for task in self.holders.tasks.values() if task.connector == connector]
        if True in tasks:
            return SourceReading.YES
        is_unknown = self.holders.doubt is not None or self.holders.group is None
        may_get_tasks = not tasks and self.holders.connectors[connector].state == _RUNNING
        return SourceReading.UNKNOWN if is_unknown or may_get_tasks or None in tasks else SourceReading.NO

    def stop(self, connector: str) -> str:
        """Return the command that stops a connector here."""
        at = () if self.profile is None else ("-p", self.profile)
        return f"`{shell_words('eosctl', 'connectors', 'stop', *at)} {arguments(connector)}`"

    def removal(self, connector: str, other: ClusterSide, name_there: str) -> str:
        """Return how to remove a connector that rests here, and runs as `name_there` in another group.

        The journal of the move that brought it there, if it is on this machine, decides.
        """
        profile = () if self.profile is None else ("-p", self.profile)
        move = ("eosctl", "connectors", "move", *profile, "--connector", connector)
        try:
            moves = read_moves(journal_of_moves(self.app, connector, cluster_id=self.cluster_id))
        except EosctlError:
            moves = Moves()
        moved = moves.there
        place = (name_there, other.cluster_id, other.group_id)
        if moved is None or (moved.name, moved.cluster_id, moved.group_id) != place:
            at = "on the machine that has the journal of its move, if there was one"
            return f"`{shell_words(*move, '--delete')}` deletes it here, {at}"
        if moves.unfinished is not None:
            return f"Its move is not finished; go on: `{shell_words(*move, '--resume')}`"
        first = "" if self.holders.is_stopped(connector) else f"Stop it: {self.stop(connector)}. "
        return f"It was moved. {first}`{shell_words(*move, '--delete')}` deletes what is left of it"

    def __str__(self) -> str:
        group = f"group {self.group_id}"
        return group if self.profile is None else f"{group} (profile {self.profile})"


def _task_reads(task: HeldTask) -> bool | None:
    """Decide whether a task reads; None where a member may run it, and REST does not show it there as running."""
    if task.holding in (Holding.FREE, Holding.FAILED):
        return False
    status = task.status
    if status is None or task.holding is not Holding.RUNS or status.worker_id not in map(worker_id_of, task.holders):
        return None
    return _READS.get(status.state)


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

        References, files, and names of hosts that are not known everywhere mean something else to each worker.
        """
        hosts = source_hosts(self.config)
        has_reference = any(is_reference(value) for value in _what_it_reads(self.config).values())
        return self.same_config() and not has_reference and bool(hosts) and all(map(_is_known_everywhere, hosts))

    def is_related(self) -> bool:
        """Decide whether they may be one connector: the same name or config."""
        return self.name == self.other or self.same_config()


def source_hosts(config: Mapping[str, str]) -> list[str]:
    """Return the hosts of the source: those of URLs, and of properties that hold hosts."""
    found = list[str]()
    for name, value in _what_it_reads(config).items():
        if is_connects_own(name) or name.startswith(_NOT_THE_SOURCE):
            continue
        parts = _AUTHORITY.findall(value) or ([value] if _HOST_PROPERTY.search(name) else [])
        found += [host.strip() for part in parts for host in part.split(",")]
    return found


def _is_known_everywhere(host: str) -> bool:
    """Decide whether a host (and its port) is the same for every worker: a public address, or a fully qualified name.

    Two labels may be a Kubernetes service and its namespace.
    """
    address = host.rpartition("]")[0].lstrip("[") or host.partition(":")[0]
    try:
        return ip_address(address).is_global
    except ValueError:
        name = _HOST_NAME.fullmatch(address)
        return name is not None and name[1].lower() not in _LOCAL_DOMAINS


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
    alike: dict[object, list[str]] = {}
    for other, entry in there.items():
        for feature in _features(other, entry, offsets_there):
            alike.setdefault(feature, []).append(other)
    for name, entry in sorted(here.items()):
        others = {other for feature in _features(name, entry, offsets_here) for other in alike.get(feature, ())}
        for other in sorted(others):
            shared = _shared(offsets_here, offsets_there, name, other)
            yield Pair(name, other, entry.config, there[other].config, shared)


def _features(name: str, entry: ConnectorEntry, offsets: SourcePartitions | None) -> Iterator[object]:
    """Yield what makes a connector like another one: its name, its config, or a source partition of its class."""
    yield name
    yield frozenset(_what_it_reads(entry.config).items())
    for partition in (offsets or {}).get(name, ()):
        yield entry.config.get(PROPERTY), partition


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
            "references, files and hosts in their config may mean something else to each worker"
            if pair.same_config()
            else "their configs differ, and their source partitions can't be compared"
        )
        return made(codes.MAY_RUN_ON_TWO_CLUSTERS, WARNING, message, certain=False)
    if not pair.is_related() or states.count(SourceReading.NO) == len(states):
        return None
    if SourceReading.NO in states and SourceReading.YES in states:
        rests, at = (other, there) if states[1] is SourceReading.NO else (name, here)
        removal = (
            there.removal(pair.other, here, pair.name) if at is there else here.removal(pair.name, there, pair.other)
        )
        fix = f"Do not start {rests} in {at} again while the other one runs. {removal}."
        return made(codes.ON_TWO_CLUSTERS, INFO, f"one runs, {rests} in {at} does not", fix=fix)
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
    """Ask the workers for their connectors, and the members for their tasks; raise the error of workers without one.

    Raises UsageError without brokers or a group, whose members alone prove what runs, and RefusedError for workers that
    are not members of the group.
    """
    group_id = app.target.require_group_id()
    app.target.require_client()
    shown, silence = shown_connectors(app)
    if silence is not None:
        raise silence
    with app.transactions() as admin:
        cluster_id = admin.cluster_id()
    holders = holders_of_shown(app, list(shown), shown)
    side = ClusterSide(app, profile, group_id, cluster_id, holders)
    if not holders.may_be_of_the_group():
        raise RefusedError(
            f"the workers that answer have tasks, and none of these workers is a member of {side}",
            hint="Compare -u and -g, or connect_url and group_id of the profile.",
        )
    return side


def _source_partitions(app: App, connectors: Collection[str]) -> SourcePartitions | None:
    """Return the source partitions that connectors have live offsets of; None where they can't be read.

    Connectors are left out where a store of theirs is not known, or a transaction may hide something in it.
    """
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
        if _is_seen(found, name)
    }


def _is_seen(found: OffsetStores, connector: str) -> bool:
    own = found.dedicated
    is_missed = connector in own.unknown or (connector in own.brokers and connector not in found.own)
    return own.connectors is not None and not is_missed and not any(s.blocked for s in found.of(connector).values())


def _unseen(profile: str, why: str, hint: str | None) -> Finding:
    message = f"whether a connector runs in profile {profile}, too, is not known: {why}"
    return Finding(codes.OTHER_GROUP_UNSEEN, WARNING, profile, message, hint or "See the message.", certain=False)
