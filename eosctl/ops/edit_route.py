"""Whether single offsets are changed by Connect's REST interface (KIP-875) or in the topics themselves.

REST runs the connector's own checks and fences its tasks, so it is taken where it is known to do what it says. It is
known not to in two cases (seen on 3.8.1, 3.9.2 and 4.3.1): a deletion with exactly-once support and a dedicated topic
reaches the global topic only, and a key that REST would spell otherwise stays while another one is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eosctl.core.config_records import decode_value
from eosctl.core.java_json import encode_key
from eosctl.core.migration_rules import Action
from eosctl.core.offset_records import IgnoredKey, OffsetKey
from eosctl.core.offset_views import PlannedWrite
from eosctl.core.upgrade_observation import parse_version
from eosctl.core.worker_modes import WorkerMode
from eosctl.errors import EosctlError, RefusedError, UsageError
from eosctl.ops.app import App
from eosctl.ops.offset_apply import Send
from eosctl.ops.offset_writes import WritePlan
from eosctl.ops.ports import ConnectWorker
from eosctl.ops.worker_view import probe_mode
from eosctl.ops.workers import discover_urls

AUTO, REST, TOPIC = "auto", "rest", "topic"
_PATCH_SINCE = (3, 6)
_DELETIONS_BROKEN_SINCE = (3, 8)


@dataclass(frozen=True, slots=True)
class Route:
    """`via` is rest or topic, `reason` says why in a sentence; `url` is the worker's, for rest."""

    via: str
    reason: str
    url: str = ""


def choose_route(app: App, connector: str, plan: WritePlan, *, via: str) -> Route:
    """The way to go; raises RefusedError where `rest` was asked for and is known not to work."""
    if via == TOPIC:
        return Route(TOPIC, "asked for")
    objection = _objection_to_plan(plan)
    url = ""
    if objection is None:
        url, objection = _objection_of_workers(app, connector, plan)
    if objection is None:
        return Route(REST, "the worker is known to do it right for these keys", url)
    if via == REST:
        raise RefusedError(f"--via rest does not work here: {objection}; nothing was written", hint="Use --via topic.")
    return Route(TOPIC, objection)


def _objection_to_plan(plan: WritePlan) -> str | None:
    if plan.allowances.names():
        return "REST changes the offsets of STOPPED connectors only"
    for write in plan.sends():
        if not _is_spelled_as_rest_does(write.key):
            return f"REST does not find the key {write.key.raw.decode('utf-8', 'replace')}, but writes another one"
        if write.partition != plan.found.stores[write.topic].home(write.key.raw):
            return f"REST does not reach partition {write.partition} of topic {write.topic} with that key"
    return None


def _is_spelled_as_rest_does(key: OffsetKey | IgnoredKey) -> bool:
    if key.connector is None:
        return False
    try:
        return key.partition is not None and encode_key(key.connector, key.partition) == key.raw
    except UsageError:  # a member that REST refuses
        return False


def _objection_of_workers(app: App, connector: str, plan: WritePlan) -> tuple[str, str | None]:
    """The URL of a worker that knows `connector`, and what speaks against asking it."""
    try:
        url, worker, _kind = _find(app, connector)
        version = worker.root()["version"]
        if (parse_version(version) or (0, 0)) < _PATCH_SINCE:
            return url, f"offsets can be changed by REST from Kafka 3.6 on; the worker runs {version}"
        if _deletion_breaks(connector, plan, version) and probe_mode(worker)[0] is not WorkerMode.NOT_ENABLED:
            reason = "with exactly-once support and a dedicated topic REST deletes from the global topic only"
            return url, f"{reason} (Kafka 3.8 to 4.3)"
    except EosctlError as exc:
        return "", f"no worker can be asked: {exc.message}"
    return url, None


def _deletion_breaks(connector: str, plan: WritePlan, version: str) -> bool:
    deletes = any(write.action is Action.DELETE for write in plan.sends())
    dedicated = plan.found.dedicated.of(connector) is not None
    return deletes and dedicated and (parse_version(version) or (0, 0)) >= _DELETIONS_BROKEN_SINCE


def _find(app: App, connector: str) -> tuple[str, ConnectWorker, str]:
    """URL and worker that know `connector`, and whether it is a source or a sink; raises EosctlError."""
    for url in discover_urls(app):
        worker = app.worker(url)
        entry = worker.connectors().get(connector)
        if entry is not None:
            status = entry.get("status")
            return url, worker, str(status.get("type")) if isinstance(status, Mapping) else "unknown"
    raise EosctlError(f"no worker knows {connector}")


def refuse_sink(app: App, connector: str) -> None:
    """Raises RefusedError for a sink connector; where no worker can be asked, others find out whether one runs."""
    try:
        _url, _worker, kind = _find(app, connector)
    except EosctlError:
        return
    if kind == "sink":
        raise RefusedError(
            f"{connector} is a sink connector: its offsets are those of the consumer group connect-{connector}",
            hint="`kafka-consumer-groups.sh --reset-offsets` changes those.",
        )


def send_by_rest(route: Route) -> Send:
    """One `PATCH` of all of a plan's keys, null where a key is deleted; what came of it is read back afterwards."""

    def send(app: App, plan: WritePlan) -> None:
        entries = {write.key.raw: _entry(write) for write in plan.sends()}
        [connector] = plan.connectors()
        app.worker(route.url).alter_offsets(connector, list(entries.values()))

    return send


def _entry(write: PlannedWrite) -> dict[str, object]:
    offset = None if write.after is None else decode_value(write.after)
    return {"partition": write.key.partition, "offset": offset}
