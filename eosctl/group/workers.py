"""One worker as it reports itself over REST: version, health, and exactly-once support."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.ids import why_unreachable
from eosctl.core.versions import kafka_version
from eosctl.core.workers.connector_entry import ConnectorEntry
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Deadline
from eosctl.errors import DeadlineError, EosctlError, UnauthorizedError, UnreachableError, UnsupportedError
from eosctl.group.modes import (
    NOT_ENABLED_TEXT,
    PROPERTY,
    is_standalone,
    mode_of_validation,
    probe_config,
    probe_plugins,
)
from eosctl.machine.side_by_side import side_by_side
from eosctl.ports import ConnectWorker

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
    it lists, None if it did not.
    """

    version: str | None = None
    kafka_cluster_id: str | None = None
    health: str = "unknown"
    mode: Mode = Mode.UNKNOWN
    evidence: tuple[str, ...] = ()
    unloadable: Mapping[str, str] = {}
    failure: EosctlError | None = None
    plugins: frozenset[str] | None = None


def view_worker(app: App, url: str) -> WorkerView:
    """Ask the worker at `url`, for a limited time; failures become evidence, never an exception."""
    view = WorkerView()
    try:
        root = _impatient(app, ROOT_PATIENCE_S).worker(url).root()
        worker = _impatient(app).worker(url)
        view = replace(view, version=root["version"], kafka_cluster_id=root["kafka_cluster_id"])
        view = replace(view, health=worker.health())
        probe = probe_worker(worker)
    except EosctlError as exc:
        silent = isinstance(exc, UnreachableError | DeadlineError) and view.health == "unknown"
        failure = exc if view.version is None else None
        return replace(view, health="unreachable" if silent else view.health, evidence=(exc.message,), failure=failure)
    return replace(view, mode=probe.mode, evidence=(probe.reason,), unloadable=probe.unloadable, plugins=probe.plugins)


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
    """The mode, enabled, not_enabled or unknown, and its `reason`; `unloadable` and `plugins` as in WorkerView."""

    mode: Mode
    reason: str
    unloadable: Mapping[str, str] = {}
    plugins: frozenset[str] | None = None


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
    return replace(probe, plugins=frozenset(str(each.get("class")) for each in listed))


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
