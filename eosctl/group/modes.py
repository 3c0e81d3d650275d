"""A worker's answers over REST, and the evidence for its `exactly.once.source.support`.

A worker reports its version, health and exactly-once support. Connect has no request that returns the mode. Validating
a connector with `exactly.once.support=required` shows whether the worker is `enabled`; `preparing` and `disabled`
answer alike, and only a worker's file distinguishes them. Weighing that evidence, from outside, is pure.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.ids import why_unreachable
from eosctl.core.java.properties import is_reference, trimmed
from eosctl.core.versions import kafka_version
from eosctl.core.workers.connector_entry import ConnectorEntry
from eosctl.core.workers.modes import CLUSTERS, CONNECT_SETTING, Mode
from eosctl.core.workers.url import advertised
from eosctl.deadline import Deadline
from eosctl.errors import (
    DeadlineError,
    EosctlError,
    UnauthorizedError,
    UnreachableError,
    UnsupportedError,
)
from eosctl.machine.side_by_side import side_by_side
from eosctl.ports import ConnectWorker

PROPERTY = "exactly.once.support"
# AbstractHerder/DistributedHerder.validateSourceConnectorConfig, the same words from 3.3 to 4.3
NOT_ENABLED_TEXT = "does not have exactly-once source support enabled"

# These validate without reaching out to anything, and leave no error in the worker's log. With `probe_config` none of
# them supports exactly-once, to which every worker of a group objects. MirrorSourceConnector comes last: it replaces
# the worker's own verdict on the property by one on its consumer, so it shows nothing.
_FILE_STREAM = "org.apache.kafka.connect.file.FileStreamSourceConnector"
_HARMLESS = (
    _FILE_STREAM,
    "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",
    "org.apache.kafka.connect.mirror.MirrorCheckpointConnector",
    "org.apache.kafka.connect.tools.VerifiableSourceConnector",
    "org.apache.kafka.connect.tools.SchemaSourceConnector",
    "org.apache.kafka.connect.tools.MockSourceConnector",
)
# Without it its own check of exactly-once fails, which the worker logs as an ERROR with its stack trace.
_NEEDED = {_FILE_STREAM: {"topic": "eosctl-probe"}}
_LAST = "org.apache.kafka.connect.mirror.MirrorSourceConnector"


def probe_plugins(plugins: Iterable[Mapping[str, object]]) -> list[str]:
    """Return the classes of the source plugins to validate with, best first.

    A plugin without a version may be one that the worker can't load.
    """
    versions = {str(each.get("class")): each.get("version") for each in plugins if each.get("type") == "source"}
    order = {name: index for index, name in enumerate((*_HARMLESS, "", _LAST))}  # all others stand where "" does
    return sorted(versions, key=lambda name: (not versions[name], order.get(name, order[""]), name))


def probe_config(plugin: str) -> dict[str, str]:
    """Return the connector configuration to validate; nothing is created from it."""
    return {"name": "eosctl-probe", "connector.class": plugin, "tasks.max": "1", PROPERTY: "required"} | _NEEDED.get(
        plugin, {}
    )


def mode_of_validation(answer: Mapping[str, object]) -> Mode:
    """Read the mode from the answer to `probe_config`: enabled, not_enabled or unknown.

    The number of errors proves nothing. A connector may replace the worker's verdict by its own; then the requested
    value is missing from the answer.
    """
    value = _config_value(answer)
    errors = value.get("errors")
    texts = [str(text) for text in errors] if isinstance(errors, list) else []
    if any(NOT_ENABLED_TEXT in text for text in texts):
        return Mode.NOT_ENABLED
    return Mode.ENABLED if value.get("value") == "required" else Mode.UNKNOWN


def is_standalone(plugin: str, answer: Mapping[str, object]) -> bool:
    """Decide whether the worker is standalone: it has no objection, where a distributed worker has one at least.

    `StandaloneHerder` does not look at the property at all (3.3 to 4.3).
    """
    value = _config_value(answer)
    return plugin in _HARMLESS and value.get("value") == "required" and not value.get("errors")


def _config_value(answer: Mapping[str, object]) -> Mapping[str, object]:
    configs = answer.get("configs")
    for entry in configs if isinstance(configs, list) else []:
        value = entry.get("value") if isinstance(entry, Mapping) else None
        if isinstance(value, Mapping) and value.get("name") == PROPERTY:
            return value
    return {}


class WorkerFileSettings(Struct, frozen=True):
    """The settings in a worker's .properties file; None if missing, or if only the worker can resolve it.

    `unresolved` are the properties whose values refer to a config provider of the worker. A `mirror_maker`'s file has
    no address of a worker.
    """

    path: str
    mode: str | None
    group_id: str | None
    host: str | None
    port: int | None
    unresolved: tuple[str, ...] = ()
    mirror_maker: bool = False


def read_worker_file(path: str, properties: Mapping[str, str]) -> WorkerFileSettings:
    """Read mode, group and advertised address from `properties`, with the defaults of `DistributedConfig` (4.3)."""
    where = advertised(properties)
    mode = trimmed(properties.get(CONNECT_SETTING, "disabled")).lower()
    group_id = trimmed(properties.get("group.id", ""))
    unresolved = [name for name in (CONNECT_SETTING, "group.id") if is_reference(properties.get(name, ""))]
    return WorkerFileSettings(
        path=path,
        mode=None if CONNECT_SETTING in unresolved else mode,
        group_id=None if "group.id" in unresolved else group_id or None,
        host=where.host,
        port=where.port,
        unresolved=(*unresolved, *where.unresolved),
        mirror_maker=CLUSTERS in properties,
    )


def files_of(url: str | None, files: Sequence[WorkerFileSettings], *, group_id: str | None) -> list[WorkerFileSettings]:
    """Return the files that may belong to the worker at `url`: those with its host, else those without a host.

    A file with the host and an unknown port may belong to it, too. A dedicated MirrorMaker's file may belong to each of
    the group's workers; a worker without a URL has no other file.
    """
    of_group = [file for file in files if group_id is None or file.group_id in (None, group_id)]
    mirrored = [file for file in of_group if file.mirror_maker]
    if url is None or mirrored:
        return mirrored
    parts = urlsplit(url)
    exact = [file for file in of_group if file.host == parts.hostname and file.port in (None, parts.port)]
    return exact or [file for file in of_group if file.host is None and file.port == parts.port]


class RefinedMode(Struct, frozen=True):
    """The mode that probe and files prove together, the evidence that the files add, and their errors."""

    mode: Mode
    evidence: tuple[str, ...] = ()
    contradiction: str | None = None


def mode_of_files(files: Sequence[WorkerFileSettings]) -> RefinedMode:
    """Derive the mode from the files alone, for a worker that no request reaches."""
    modes = {file.mode for file in files}
    evidence = tuple(f"{file.path} says {file.mode or 'what only the worker can resolve'}" for file in files)
    if len(modes) != 1 or None in modes:
        return RefinedMode(Mode.UNKNOWN, evidence)
    return RefinedMode(Mode(str(modes.pop())), tuple(f"{text}, which no request can confirm" for text in evidence))


def refine_mode(probed: Mode, files: Sequence[WorkerFileSettings]) -> RefinedMode:
    """Combine probe and files; a file never overrules the probe, as a worker may run with an older version of it."""
    untold = tuple(
        f"{file.path}: only the worker can resolve its {CONNECT_SETTING}" for file in files if file.mode is None
    )
    files = [file for file in files if file.mode is not None]
    if untold:
        refined = refine_mode(probed, files)
        return replace(refined, evidence=(*refined.evidence, *untold))
    evidence = tuple(f"{file.path} says {file.mode}" for file in files)
    modes = {str(file.mode) for file in files}
    if len(modes) != 1:
        return _contradiction(probed, (f"files disagree: {', '.join(evidence)}",)) if evidence else RefinedMode(probed)
    mode = modes.pop()
    if probed is Mode.NOT_ENABLED and mode in (Mode.PREPARING, Mode.DISABLED):
        return RefinedMode(Mode(mode), evidence)
    if probed is Mode.UNKNOWN:
        return RefinedMode(probed, tuple(f"{text}, which nothing confirms" for text in evidence))
    if probed.value == mode:
        return RefinedMode(probed, evidence)
    otherwise = "but the worker runs otherwise: it was not restarted since, or reads another file"
    return _contradiction(probed, tuple(f"{text}, {otherwise}" for text in evidence))


def _contradiction(probed: Mode, evidence: tuple[str, ...]) -> RefinedMode:
    return RefinedMode(probed, evidence, contradiction="; ".join(evidence))


WORKER_PATIENCE_S = 15.0  # a worker may take 10 s for the verdict on its own health
ROOT_PATIENCE_S = 8.0  # a worker answers its version at once
PARALLEL_WORKERS = 32
STANDALONE = "a standalone worker, which is of no group and does not know exactly-once"
_PROBE_ATTEMPTS = 3
_MOST_FAILURES = 20
"""The number of failures after which no more plugins are tried: each takes a request, and some a worker's log line."""
K = TypeVar("K")
_NEWEST = (sys.maxsize, 0)


class WorkerView(Struct, frozen=True):
    """The answers of a worker; `health` is healthy, starting, unhealthy, unknown or unreachable; `evidence` is in
    sentences.

    `unloadable` are source plugins whose classes don't fit the worker, each with its message. `failure` is why nothing
    is known of the worker: no answer, or not one of a Connect worker. `plugins` are the classes of the connectors that
    it lists, each with its versions: several since Kafka 4.1, none if it can't be loaded. None if it did not list them.
    """

    version: str | None = None
    kafka_cluster_id: str | None = None
    health: str = "unknown"
    mode: Mode = Mode.UNKNOWN
    evidence: tuple[str, ...] = ()
    unloadable: Mapping[str, str] = {}
    failure: EosctlError | None = None
    plugins: Mapping[str, frozenset[str]] | None = None


def view_worker(app: App, url: str) -> WorkerView:
    """Ask the worker at `url`, for a limited time; failures become evidence, never an exception."""
    view = WorkerView()
    try:
        root = root_of(app, _impatient(app, ROOT_PATIENCE_S).worker(url))
        worker = _impatient(app).worker(url)
        view = replace(view, version=root["version"], kafka_cluster_id=root["kafka_cluster_id"])
        view = replace(view, health=worker.health())
        probe = probe_worker(worker)
    except EosctlError as exc:
        silent = isinstance(exc, UnreachableError | DeadlineError) and view.health == "unknown"
        failure = exc if view.version is None else None
        return replace(view, health="unreachable" if silent else view.health, evidence=(exc.message,), failure=failure)
    return replace(
        view, mode=probe.mode, evidence=(probe.reason,), unloadable=probe.unloadable, plugins=probe.plugins,
    )  # fmt: skip


def _silence_of(app: App, url: str) -> EosctlError | None:
    """Return why nothing answers at `url`, as `view_worker` would see it; None if something answers."""
    try:
        _impatient(app, ROOT_PATIENCE_S).worker(url).root()
    except (UnreachableError, DeadlineError) as exc:
        return exc
    except EosctlError:
        return None
    return None


def silences_of(app: App, urls: Mapping[K, str]) -> dict[K, EosctlError]:
    """Return those of `urls` (by any name) where nothing answers, and why; ask in parallel, as all may hang."""
    found = side_by_side(lambda url: _silence_of(app, url), urls.values(), most=PARALLEL_WORKERS)
    return {name: silence for name, silence in zip(urls, found, strict=True) if silence is not None}


def root_of(app: App, worker: ConnectWorker) -> Mapping[str, str]:
    """Return the worker's answer to `GET /`; keep the id of its Kafka cluster for `cluster_id_of`."""
    if app.rest is None:
        return worker.root()
    app.rest.note_cluster(worker.url, None, app.clock)
    root = worker.root()
    app.rest.note_cluster(worker.url, root["kafka_cluster_id"], app.clock)
    return root


def cluster_id_of(app: App, worker: ConnectWorker) -> str:
    """Return the id of the worker's Kafka cluster as its last `root_of` had it a moment ago, else ask for it."""
    known = None if app.rest is None else app.rest.cluster_id(worker.url, app.clock)
    return known or root_of(app, worker)["kafka_cluster_id"]


def refuse_unreachable(connector: str, worker: ConnectWorker) -> None:
    """Raise UnsupportedError for a connector that no request to this worker can name; most names need no request."""
    if why_unreachable(connector, _NEWEST) is None:
        return
    reason = why_unreachable(connector, kafka_version(worker.root()["version"]))
    if reason is not None:
        raise UnsupportedError(f"{reason}; nothing was changed", hint="Such a connector can't be stopped or changed.")


def connectors_at(app: App, url: str) -> Mapping[str, ConnectorEntry] | None:
    """Return the connectors that the worker at `url` knows; None if it does not report them."""
    try:
        return _impatient(app).worker(url).connectors()
    except EosctlError:
        return None


def _impatient(app: App, most_s: float = WORKER_PATIENCE_S) -> App:
    """Limit the deadline to `most_s`, and to half of the remaining time: a frozen worker must not use up all of it."""
    return replace(app, deadline=Deadline.after(min(most_s, app.deadline.remaining_s() / 2), app.clock))


class Probe(Struct, frozen=True):
    """The mode, enabled, not_enabled or unknown, and its `reason`; all else as in WorkerView."""

    mode: Mode
    reason: str
    unloadable: Mapping[str, str] = {}
    plugins: Mapping[str, frozenset[str]] | None = None


def probe_mode(worker: ConnectWorker) -> tuple[Mode, str]:
    """Return the mode that `probe_worker` finds, and why."""
    probe = probe_worker(worker)
    return probe.mode, probe.reason


def probe_worker(worker: ConnectWorker) -> Probe:
    """Validate `exactly.once.support=required` with a source plugin; nothing is created.

    A plugin that replaces the worker's verdict by its own is skipped, a few times. One that fails proves nothing of the
    worker, and the next one is tried: with plugins of another release than the worker's, all of the first may fail.
    Raises what `plugins` raises.
    """
    listed = worker.plugins()
    probe = _probe_with(worker, probe_plugins(listed))
    return replace(probe, plugins=_versions_by_class(listed))


def _versions_by_class(listed: Iterable[Mapping[str, object]]) -> dict[str, frozenset[str]]:
    found = dict[str, frozenset[str]]()
    for each in listed:
        name, version = str(each.get("class")), each.get("version")
        found[name] = found.get(name, frozenset()) | ({str(version)} if version else frozenset())
    return found


def find_unloadable(worker: ConnectWorker, plugins: Iterable[str]) -> dict[str, str]:
    """Return those of the first few plugins whose classes don't fit the worker, each with its message.

    Validate a config with each; nothing is created. Raises UnreachableError and DeadlineError.
    """
    failed: dict[str, str] = {}
    for plugin in sorted(plugins)[:_MOST_FAILURES]:
        try:
            worker.validate(plugin, probe_config(plugin))
        except (UnreachableError, DeadlineError):
            raise
        except EosctlError as exc:
            failed[plugin] = exc.message
    return _unloadable(failed)


def _probe_with(worker: ConnectWorker, candidates: Sequence[str]) -> Probe:
    if not candidates:
        return Probe(Mode.UNKNOWN, "the worker has no source plugin to validate with")
    doubts: list[str] = []
    failed: dict[str, str] = {}
    for plugin in candidates:
        name = plugin.rpartition(".")[2]
        if len(doubts) == _PROBE_ATTEMPTS or len(failed) == _MOST_FAILURES:
            break
        try:
            answer = worker.validate(plugin, probe_config(plugin))
        except (UnreachableError, DeadlineError):
            raise
        except UnauthorizedError as exc:
            doubts.append(f"validating {name} failed: {exc.message}")
            continue
        except EosctlError as exc:
            failed[plugin] = exc.message
            continue
        verdict = _verdict(plugin, answer)
        if verdict is not None:
            return replace(verdict, unloadable=_unloadable(failed))
        doubts.append(f"validating {name} says nothing on {PROPERTY} (Kafka below 3.3, or the plugin's own verdict)")
    if failed:
        names = ", ".join(plugin.rpartition(".")[2] for plugin in failed)
        doubts.append(f"validating {names} failed: {next(iter(failed.values()))}")
    return Probe(Mode.UNKNOWN, "; ".join(doubts), _unloadable(failed))


def _verdict(plugin: str, answer: Mapping[str, object]) -> Probe | None:
    """Interpret a validation's answer; return None if it proves nothing of the worker."""
    name = plugin.rpartition(".")[2]
    if is_standalone(plugin, answer):
        return Probe(Mode.UNKNOWN, STANDALONE)
    mode = mode_of_validation(answer)
    if mode is Mode.ENABLED:
        return Probe(mode, f"validating {name} with {PROPERTY}=required: no objection from the worker")
    if mode is Mode.NOT_ENABLED:
        return Probe(mode, f"validating {name} with {PROPERTY}=required: this worker {NOT_ENABLED_TEXT}")
    return None


def _unloadable(failed: Mapping[str, str]) -> dict[str, str]:
    """Return the plugins that failed for a missing or incompatible class."""
    return {plugin: message for plugin, message in failed.items() if _LINKAGE.search(message)}


_LINKAGE = re.compile(
    r"\b(?:NoClassDefFound|NoSuchMethod|NoSuchField|IncompatibleClassChange|AbstractMethod|UnsupportedClassVersion|"
    r"ExceptionInInitializer|Linkage)Error\b|\bClassNotFoundException\b"
)
