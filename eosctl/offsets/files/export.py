"""`offsets export`: a store as lines of NDJSON, key and value bytes as they are, or as a KIP-875 body."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from eosctl.app import App
from eosctl.connectors.dedicated import gather_dedicated_topics
from eosctl.core.configs.view import without_secrets
from eosctl.core.offsets.names import DEDICATED, GLOBAL
from eosctl.core.offsets.records import OffsetKey, decode_key
from eosctl.core.offsets.views import fold_store
from eosctl.core.open_transactions import OPEN_TRANSACTION
from eosctl.core.record_file import record_line
from eosctl.core.records import Record, TopicRead
from eosctl.core.wording import counted
from eosctl.errors import NotFoundError, RefusedError, UsageError
from eosctl.events import Event
from eosctl.offsets.files import codes
from eosctl.offsets.files.rows import OFFSETS_EXPORT, ExportData, ExportSummary, Format
from eosctl.offsets.files.rules import RestBody, rest_body
from eosctl.offsets.stores.gather import locate, settled_read
from eosctl.ports import TopicStore
from eosctl.report import Problem, Report
from eosctl.state.backups import write_lines

NDJSON: Format = "ndjson"
_LEFT_OUT = {
    codes.NULL_PARTITION: "with a null source partition, which REST refuses",
    codes.NOT_AN_OFFSET: "with a value that is not an offset",
    codes.OTHER_SPELLING: "spelled otherwise and older than what is in the file",
}


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """Which store, whose records (none named: all), and how.

    `all_records` takes the whole committed log instead of the newest record of each key and partition; `rest` is a
    body of the offsets of one connector, without deletions. `with_secrets` leaves configs of the config topic as they
    are, passwords and session key included.
    """

    store: str
    connectors: tuple[str, ...] = ()
    format: Format = NDJSON
    all_records: bool = False
    with_secrets: bool = False


@dataclass(frozen=True, slots=True)
class _Exported:
    read: TopicRead
    cluster_id: str
    group_id: str | None
    kept: tuple[Record, ...]
    lines: tuple[str, ...]
    problems: tuple[Problem, ...]


def export_offsets(app: App, request: ExportRequest, *, path: str) -> Report:
    """Writes committed records of a store to a file, whole or not at all.

    Tombstones and keys that Connect ignores are in a record file; with `connectors`, only what is theirs.
    """
    exported = _export(app, request)
    write_lines(path, exported.lines)
    return Report(
        kind=OFFSETS_EXPORT,
        summary=ExportSummary(
            records=len(exported.kept),
            tombstones=sum(record.value is None for record in exported.kept),
            records_read=exported.read.records_read,
        ),
        data=ExportData(file=path, topic=exported.read.topic, format=request.format),
        target={"kafka_cluster_id": exported.cluster_id, "group_id": exported.group_id},
        problems=exported.problems,
    )


def export_lines(app: App, request: ExportRequest) -> Sequence[str]:
    """The lines that `export_offsets` writes; what is missing from them is said as it would be there."""
    exported = _export(app, request)
    for problem in exported.problems:
        app.on_event(Event(problem.message, warning=True))
    return exported.lines


def _export(app: App, request: ExportRequest) -> _Exported:
    _require_sense(request)
    app, store = locate(app, request.store)
    read, cluster_id = _read(app, request, store)
    whole = tuple(_kept(read, request.connectors))
    kept = whole if request.with_secrets else tuple(map(without_secrets, whole))
    problems = _blocked_problems(read) + _hidden_problems(read.topic, whole, kept)
    if request.format == NDJSON:
        return _Exported(read, cluster_id, app.target.group_id, kept, tuple(map(record_line, kept)), tuple(problems))
    body = rest_body(fold_store(read), request.connectors[0])
    problems += _left_out_problems(body)
    lines = tuple(body.text().splitlines())
    return _Exported(read, cluster_id, app.target.group_id, kept, lines, tuple(problems))


def _require_sense(request: ExportRequest) -> None:
    if request.format == NDJSON:
        return
    if len(request.connectors) != 1:
        raise UsageError("a KIP-875 body holds the offsets of one connector", hint="Name it: --connector NAME.")
    if request.all_records:
        raise UsageError("a KIP-875 body has one offset per source partition", hint="Leave --all-records out.")


def _read(app: App, request: ExportRequest, store: str) -> tuple[TopicRead, str]:
    with app.topics() as topics:
        topic = store_topic(app, topics, store, request.connectors)
        if topic not in topics.describe([topic]):
            raise NotFoundError(f"there is no topic {topic}", hint="A store is global, dedicated, or a topic by name.")
        return settled_read(app, topics, topic, newest_per_key=not request.all_records), topics.cluster_id()


def store_topic(app: App, topics: TopicStore, store: str, connectors: Sequence[str]) -> str:
    """The one topic that `store` means; raises UsageError where `dedicated` leaves a choice.

    Raises RefusedError for a connector whose dedicated topic is on brokers of its own.
    """
    if store == GLOBAL:
        return app.target.offset_topic
    if store != DEDICATED:
        return store
    dedicated = gather_dedicated_topics(app, topics)
    for connector in connectors:
        if connector in dedicated.brokers:
            raise RefusedError(
                f"the config of {connector} names Kafka brokers of its own, where its offsets topic is",
                hint="Make a profile that leads there, and name the store: TOPIC@PROFILE.",
            )
    found = {dedicated.of(connector) for connector in connectors}
    topic = found.pop() if len(found) == 1 else None
    if topic is None:
        raise UsageError(
            "which dedicated topic?", hint="Give --connector with a connector that has one, or name the topic."
        )
    return topic


def _kept(read: TopicRead, connectors: Sequence[str]) -> list[Record]:
    return [record for record in read.records if not connectors or _owner(record) in connectors]


def _owner(record: Record) -> str | None:
    key = decode_key(record.key)
    return key.connector if isinstance(key, OffsetKey) else None


def _blocked_problems(read: TopicRead) -> list[Problem]:
    partitions = ", ".join(str(bound.partition) for bound in read.blocked())
    if not partitions:
        return []
    message = f"topic {read.topic}, partition {partitions}: what lies behind an open transaction is not in the file"
    return [Problem(OPEN_TRANSACTION, message, hint="`eosctl txn hanging` shows its producer.", severity="warning")]


def _hidden_problems(topic: str, whole: Sequence[Record], kept: Sequence[Record]) -> list[Problem]:
    count = sum(one is not other for one, other in zip(whole, kept, strict=True))
    if not count:
        return []
    message = f"topic {topic} holds configs: in {count} of them, what may be a secret is *** in the file"
    return [Problem(codes.SECRETS_HIDDEN, message, hint="--with-secrets keeps the file exact.", severity="warning")]


def _left_out_problems(body: RestBody) -> list[Problem]:
    return [
        Problem(
            reason,
            f"{counted(count, 'offset')} {_LEFT_OUT[reason]}: not in the file",
            hint="--format ndjson holds everything.",
            severity="warning",
        )
        for reason, count in sorted(Counter(reason for _record, reason in body.left_out).items())
    ]
