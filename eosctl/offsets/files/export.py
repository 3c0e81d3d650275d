"""`offsets export`: a store as lines of NDJSON, key and value bytes as they are, or as a KIP-875 body."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct

from eosctl.app import App
from eosctl.codes import Code
from eosctl.connectors.dedicated import gather_dedicated_topics
from eosctl.core.configs.view import CONFIG_KEYS, without_secrets
from eosctl.core.offsets.names import DEDICATED, GLOBAL
from eosctl.core.offsets.views import fold_store
from eosctl.core.open_transactions import OPEN_TRANSACTION
from eosctl.core.records import Bounds, TopicRead
from eosctl.core.wording import counted
from eosctl.deadline import Event
from eosctl.errors import NotFoundError, RefusedError, UsageError
from eosctl.machine.side_by_side import ahead, two_at_a_time
from eosctl.offsets import codes
from eosctl.offsets.files.rows import OFFSETS_EXPORT, ExportData, ExportSummary, Format
from eosctl.offsets.files.rules import rest_body
from eosctl.offsets.stores.gather import locate, read_stable_bounds
from eosctl.ports import TopicReader
from eosctl.report import Problem, Report
from eosctl.state.backups import write_blocks

if TYPE_CHECKING:
    from eosctl.engine.reading.stretches import RecordRun

NDJSON: Format = "ndjson"
REST: Format = "rest"
_LEFT_OUT = {
    codes.NULL_PARTITION: "with a null source partition, which REST refuses",
    codes.NOT_AN_OFFSET: "with a value that is not an offset",
    codes.OTHER_SPELLING: "spelled otherwise and older than what is in the file",
}


class ExportRequest(Struct, frozen=True):
    """The store to export, the connectors to keep (none named: all), and the format.

    `all_records` takes the whole committed log instead of the newest record of each key and partition; `rest` is a
    body of the offsets of one connector, without deletions, `strimzi` the same in a ConfigMap. `with_secrets` leaves
    configs of the config topic as they are, passwords and session key included.
    """

    store: str
    connectors: tuple[str, ...] = ()
    format: Format = NDJSON
    all_records: bool = False
    with_secrets: bool = False


class _Export:
    """A pass over the records of a store that counts them: `problems` are complete when it has ended."""

    def __init__(self, request: ExportRequest, topic: str, bounds: Sequence[Bounds], cluster_id: str) -> None:
        self._request, self._bounds = request, bounds
        self.topic, self.cluster_id = topic, cluster_id
        self.records = self.tombstones = self.records_read = 0
        self._with_secrets, self._left_out = 0, Counter[Code]()

    def blocks(self, topics: TopicReader) -> Iterator[bytes]:
        """Yield the file's lines, many at a time; hold only the newest records of some partitions in memory.

        The next lines are made while others are written, two blocks at a time.
        """
        return ahead(self._blocks(topics))

    def _blocks(self, topics: TopicReader) -> Generator[bytes, None, None]:
        newest = not self._request.all_records
        parts = topics.stream(self.topic, self._bounds, newest_per_key=newest)
        if self._request.format == NDJSON:
            yield from run_lines(map(self._keep, parts))
            return
        whole = [record for part in parts for record in self._keep(part).records()]
        body = rest_body(
            fold_store(TopicRead(self.topic, tuple(self._bounds), tuple(whole), self.records_read)),
            self._request.connectors[0],
        )
        self._left_out.update(reason for _record, reason in body.left_out)
        [connector] = self._request.connectors
        yield f"{body.text() if self._request.format == REST else body.config_map(connector)}\n".encode()

    def _keep(self, part: RecordRun) -> RecordRun:
        """Keep the requested records, and hide secrets."""
        self.records_read += part.read
        if self._request.connectors:
            part = part.of_connectors(self._request.connectors)
        if not self._request.with_secrets:
            part, hidden = part.changed(CONFIG_KEYS, without_secrets)
            self._with_secrets += hidden
        self.records += len(part)
        self.tombstones += part.tombstones()
        return part

    def problems(self) -> list[Problem]:
        """Report what is missing from the file, or changed in it."""
        return [
            *_blocked_problems(self.topic, self._bounds),
            *_hidden_problems(self.topic, self._with_secrets),
            *_left_out_problems(self._left_out),
        ]


def run_lines(runs: Iterable[RecordRun]) -> Iterator[bytes]:
    """Yield records as lines of a record file, many at a time."""
    from eosctl.engine.backups.file import record_lines

    return two_at_a_time(record_lines, chain.from_iterable(run.blocks() for run in runs))


def export_offsets(app: App, request: ExportRequest, *, path: str) -> Report:
    """Write committed records of a store to a file, whole or not at all.

    A record file includes tombstones and keys that Connect ignores; with `connectors`, only the records of these.
    """
    with _opened(app, request) as (export, topics):
        write_blocks(path, export.blocks(topics))
    return Report(
        kind=OFFSETS_EXPORT,
        summary=ExportSummary(records=export.records, tombstones=export.tombstones, records_read=export.records_read),
        data=ExportData(file=path, topic=export.topic, format=request.format),
        target={"kafka_cluster_id": export.cluster_id, "group_id": app.target.group_id},
        problems=export.problems(),
    )


def export_blocks(app: App, request: ExportRequest) -> Iterator[bytes]:
    """Yield the lines that `export_offsets` writes, many at a time; report at the end what is missing from them."""
    with _opened(app, request) as (export, topics):
        yield from export.blocks(topics)
    for problem in export.problems():
        app.on_event(Event(problem.message, warning=True))


@contextmanager
def _opened(app: App, request: ExportRequest) -> Iterator[tuple[_Export, TopicReader]]:
    _require_sense(request)
    app, store = locate(app, request.store)
    with app.topics() as topics:
        topic = store_topic(app, topics, store, request.connectors)
        if topic not in topics.describe([topic]):
            raise NotFoundError(f"there is no topic {topic}", hint="A store is global, dedicated, or a topic by name.")
        yield _Export(request, topic, read_stable_bounds(app, topics, topic), topics.cluster_id()), topics


def _require_sense(request: ExportRequest) -> None:
    if request.format == NDJSON:
        return
    if len(request.connectors) != 1:
        raise UsageError("a KIP-875 body holds the offsets of one connector", hint="Name it: --connector NAME.")
    if request.all_records:
        raise UsageError("a KIP-875 body has one offset per source partition", hint="Leave --all-records out.")


def store_topic(app: App, topics: TopicReader, store: str, connectors: Sequence[str]) -> str:
    """Return the one topic that `store` means; raise UsageError if `dedicated` is ambiguous.

    Raises RefusedError for a connector whose config names Kafka brokers of its own.
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


def _blocked_problems(topic: str, bounds: Sequence[Bounds]) -> list[Problem]:
    partitions = ", ".join(str(bound.partition) for bound in bounds if bound.lso < bound.end)
    if not partitions:
        return []
    message = f"topic {topic}, partition {partitions}: what lies behind an open transaction is not in the file"
    return [Problem(OPEN_TRANSACTION, message, hint="`eosctl txn hanging` shows its producer.").as_warning()]


def _hidden_problems(topic: str, count: int) -> list[Problem]:
    if not count:
        return []
    message = (
        f"topic {topic} holds configs: in {count} of them, what is not known to be harmless is *** in the file, and "
        "addresses are cut behind the host"
    )
    return [Problem(codes.SECRETS_HIDDEN, message, hint="--with-secrets keeps the file exact.")]


def _left_out_problems(left_out: Counter[Code]) -> list[Problem]:
    return [
        Problem(
            reason,
            f"{counted(count, 'offset')} {_LEFT_OUT[reason]}: not in the file",
            hint="--format ndjson holds everything.",
        )
        for reason, count in sorted(left_out.items())
    ]
