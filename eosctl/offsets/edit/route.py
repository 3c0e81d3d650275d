"""Chooses whether single offsets are changed through Connect's REST interface (KIP-875) or in the topics themselves.

REST runs the connector's own checks and fences its tasks, so it is used where it is known to be correct. It is known to
be wrong in two cases (seen on 3.8.1, 3.9.2 and 4.3.1): a deletion with exactly-once support and a dedicated topic
reaches the global topic only, and a key that REST would spell otherwise stays while another one is written.
"""

from __future__ import annotations

import re

from msgspec import Struct

from eosctl.app import App
from eosctl.core.configs.records import decode_value
from eosctl.core.ids import why_unreachable
from eosctl.core.java.json import encode_key
from eosctl.core.offsets.records import IgnoredKey, OffsetKey
from eosctl.core.offsets.views import KeyAction, PlannedWrite
from eosctl.core.versions import is_older, kafka_version, shown_version
from eosctl.core.workers.modes import Mode
from eosctl.errors import ConnectError, DeadlineError, EosctlError, RefusedError, UnsupportedError, UsageError
from eosctl.group.absent import leader_worker
from eosctl.group.belonging import connectors_of
from eosctl.group.gather import discover_urls, in_turn
from eosctl.group.modes import probe_mode
from eosctl.offsets.writes import OffsetWritePlan

AUTO, REST, TOPIC = "auto", "rest", "topic"
_PATCH_SINCE = (3, 6)
_DELETIONS_BROKEN_SINCE = (3, 8)
_TIMED_OUT = re.compile(r"\btim(?:ed|e) ?out\b", re.IGNORECASE)  # by Connect itself, Jetty or a proxy


class EditRoute(Struct, frozen=True):
    """The route of an edit: `via` is rest or topic, `reason` is a sentence."""

    via: str
    reason: str


def choose_route(app: App, connector: str, plan: OffsetWritePlan, *, via: str) -> EditRoute:
    """Choose between the REST interface and the topics.

    If `via` is `rest`, raises UnsupportedError for a worker that lacks it, RefusedError if it is known to go wrong.
    """
    if via == TOPIC:
        return EditRoute(TOPIC, "as --via says")
    if not plan.sends():
        return EditRoute(REST if via == REST else TOPIC, "nothing is to be written")
    try:
        objection = _objection_to_plan(plan) or _objection_of_leader(app, connector, plan)
    except UnsupportedError as exc:
        if via == REST:
            raise
        objection = exc.message
    if objection is None:
        return EditRoute(REST, "the worker's REST API is known to write these keys as they are")
    if via == REST:
        raise RefusedError(f"--via rest does not work here: {objection}; nothing was written", hint="Use --via topic.")
    return EditRoute(TOPIC, objection)


def _objection_to_plan(plan: OffsetWritePlan) -> str | None:
    if plan.allowances.write_unstopped():
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


def _objection_of_leader(app: App, connector: str, plan: OffsetWritePlan) -> str | None:
    """Return the reason not to ask the leader, else None; a follower gives up on the leader after 30 s.

    Raises UnsupportedError for a worker that is too old.
    """
    try:
        worker = leader_worker(app)
        version = worker.root()["version"]
        if is_older(version, _PATCH_SINCE):
            raise UnsupportedError(
                f"changing offsets by REST needs Kafka 3.6 (KIP-875); the worker runs {shown_version(version)}",
                hint="Nothing was written. --via topic does it on any version.",
            )
        if (reason := why_unreachable(connector, kafka_version(version))) is not None:
            return reason
        if connector not in worker.connectors():
            return f"the leader does not know {connector}"
        if _deletion_breaks(connector, plan, version) and probe_mode(worker)[0] is not Mode.NOT_ENABLED:
            reason = "with exactly-once support and a dedicated topic REST deletes from the global topic only"
            return f"{reason} (Kafka 3.8 to 4.3)"
    except UnsupportedError:
        raise
    except EosctlError as exc:
        return f"the leader can't be asked: {exc.message}"
    return None


def _deletion_breaks(connector: str, plan: OffsetWritePlan, version: str) -> bool:
    deletes = any(write.action is KeyAction.DELETE for write in plan.sends())
    dedicated = plan.found.dedicated.of(connector) is not None
    return deletes and dedicated and not is_older(version, _DELETIONS_BROKEN_SINCE)


def refuse_sink(app: App, connector: str) -> None:
    """Raise RefusedError for a sink connector; without a worker that answers, leave it to later checks."""
    if _kind_of(app, connector) == "sink":
        raise RefusedError(
            f"{connector} is a sink connector: its offsets are those of the consumer group connect-{connector}",
            hint="`kafka-consumer-groups.sh --reset-offsets` changes those.",
        )


def _kind_of(app: App, connector: str) -> str | None:
    """Return `source` or `sink` by the first worker that answers; None without one, or for an unknown connector."""
    try:
        urls = discover_urls(app)
    except EosctlError:
        return None
    for _url, worker in in_turn(app, urls):
        try:
            entry = connectors_of(app, worker).get(connector)
        except EosctlError:
            continue
        return None if entry is None else entry.type
    return None


def send_by_rest(app: App, plan: OffsetWritePlan) -> None:
    """Send all keys of a plan to the leader in one `PATCH`, null for a deletion; its answer proves nothing.

    Raises DeadlineError for a 500 that reports a timeout: the worker goes on with the request that it has begun.
    """
    entries = {write.key.raw: _entry(write) for write in plan.sends()}
    [connector] = plan.connectors()
    try:
        leader_worker(app).alter_offsets(connector, list(entries.values()))
    except ConnectError as exc:
        if not _TIMED_OUT.search(exc.message):
            raise
        raise DeadlineError(exc.message, hint="The worker may still do it: look again before anything else.") from exc


def _entry(write: PlannedWrite) -> dict[str, object]:
    offset = None if write.after is None else decode_value(write.after)
    return {"partition": write.key.partition, "offset": offset}
