"""The rows of `txn applications`, one per application."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from eosctl.core.ids import TransactionalId
from eosctl.core.versions import describe_transaction_version
from eosctl.output.cells import duration
from eosctl.output.rows import Header, Kind, Printed, Text, Time
from eosctl.report import Report
from eosctl.txn.applications.rules import ApplicationKind, Guarantee, Naming, Product

_NO_NAME = "(nothing in common)"


class ReadingPart(Printed):
    """One reading of the ids."""

    product: Annotated[Product, "What makes such ids."]
    name: Annotated[str, "The application, if they are its."]


class ApplicationRow(Printed):
    """The transactional ids of one application."""

    application: Annotated[
        str,
        "What the ids have in common: the application.id of Streams, the prefix of a Flink sink or of Spring, "
        "`GROUP-CONNECTOR` or the leader's id of Connect, else their longest common prefix.",
    ]
    kind: Annotated[
        ApplicationKind, "What uses the ids; `ambiguous` where they can be read in several ways, which are in could_be."
    ]
    sure: Annotated[bool, "Whether the cluster shows that it is so; else the shape of the ids alone says it."]
    could_be: Annotated[list[ReadingPart], "Each way in which the ids can be read; none of unknown ones."]
    group_id: Annotated[str | None, "The Connect group, or the consumer group of a Spring listener."]
    connector: Annotated[str | None, "The connector of these tasks; null for a leader."]
    guarantee: Annotated[Guarantee | None, "`processing.guarantee` of Kafka Streams, as its ids show it."]
    naming: Annotated[
        Naming | None,
        "TransactionNamingStrategy of a Flink sink: `incrementing` (an id per subtask and checkpoint) or `pooling`.",
    ]
    ids: Annotated[int, "How many ids there are.", Header("IDS")]
    open: Annotated[int, "How many have a transaction open."]
    oldest_open: Annotated[
        TransactionalId | None, "The id whose transaction has been open for the longest time.", Header("OLDEST-ID")
    ]
    oldest_open_started_ms: Annotated[int | None, "When that one began, in milliseconds since 1970."]
    oldest_open_age_ms: Annotated[int | None, "Milliseconds since that one began."]
    members: Annotated[
        int | None, "How many tasks, subtasks, threads or partitions the ids have, by the first number in them."
    ]
    highest: Annotated[
        int | None, "The highest last number: of a checkpoint, a place in the pool, a task, a thread or a partition."
    ]
    described: Annotated[int, "Of how many ids the coordinator was asked: what follows is known of these."]
    timeout_ms_min: Annotated[int | None, "The lowest transaction timeout of those, in milliseconds."]
    timeout_ms_max: Annotated[int | None, "The highest transaction timeout of those, in milliseconds."]
    epoch_max: Annotated[int | None, "The highest producer epoch of those; null where none is described."]
    grown_by: Annotated[int | None, "How many ids more than at the last look; null at the first look.", Header("GROWN")]
    last_started_ms: Annotated[int | None, "When their newest transaction began, in milliseconds since 1970."]
    last_started: Annotated[Time | None, "When their newest transaction began.", Header("LAST-USED")]
    expires_ms: Annotated[
        int | None, "Of an idle application: before this brokers keep the newest id; null where that is not known."
    ]
    expires: Annotated[Time | None, "The same, as a time."]
    memory_bytes: Annotated[int, "Roughly what coordinators hold of the ids: 300 bytes and its characters for each."]
    shares_prefix_with: Annotated[list[str], "Other applications with ids of the same prefix."]
    remarks: Annotated[list[str], "Codes of what is worth a word; `eosctl explain CODE` says what each means."]

    @Header("APPLICATION")
    def called(self) -> str:
        """Return what the ids have in common."""
        return self.application or _NO_NAME

    @Header("KIND")
    def what(self) -> str:
        """Return the product that uses the ids; with `?` if that is derived from the ids alone."""
        if self.kind == "ambiguous":
            return " or ".join(dict.fromkeys(each.product for each in self.could_be)) + "?"
        more = {"exactly_once": " v1", "exactly_once_v2": " v2"}.get(self.guarantee or "", "")
        return f"{self.kind}{more}{'' if self.sure or self.kind == 'unknown' else '?'}"

    @Header("OLDEST-OPEN")
    def oldest_for(self) -> str | None:
        """Return how long the oldest transaction has been open."""
        return None if self.oldest_open_age_ms is None else duration(self.oldest_open_age_ms)

    @Header("TIMEOUT")
    def timeout(self) -> str | None:
        """Return transaction timeouts, lowest to highest."""
        if self.timeout_ms_min is None or self.timeout_ms_max is None:
            return None
        lowest, highest = duration(self.timeout_ms_min), duration(self.timeout_ms_max)
        return lowest if lowest == highest else f"{lowest}-{highest}"


class ApplicationsSummary(Printed):
    """All applications of the cluster, and the limits that its brokers set."""

    applications: Annotated[int, "How many applications there are."]
    ids: Annotated[int, "How many ids there are."]
    open: Annotated[int, "How many have a transaction open."]
    memory_bytes: Annotated[int, "Roughly what coordinators hold of all ids."]
    max_timeout_ms: Annotated[int | None, "The brokers' transaction.max.timeout.ms; null where it can't be read."]
    expiration_ms: Annotated[int | None, "The brokers' transactional.id.expiration.ms; null where it can't be read."]
    transaction_version: Annotated[
        int | None, "The level of `transaction.version` in use (KIP-890); null where no broker reports its features."
    ]
    last_look_ms: Annotated[int | None, "When eosctl counted the ids last, in milliseconds since 1970."]
    last_look: Annotated[Time | None, "When eosctl counted the ids last; null at the first look."]


def _closing_lines(report: Report) -> Iterator[str]:
    summary = report.summary_of(ApplicationsSummary)
    yield f"applications: {summary.applications:,}, ids: {summary.ids:,}, open: {summary.open:,}"
    kilobytes = -(-summary.memory_bytes // 1024)
    yield f"memory: about {kilobytes:,} KB at the coordinators, 300 bytes and the name for each id"
    limits = [
        f"{name} {duration(value)}"
        for name, value in (
            ("transaction.max.timeout.ms", summary.max_timeout_ms),
            ("transactional.id.expiration.ms", summary.expiration_ms),
        )
        if value is not None
    ]
    if limits:
        yield f"brokers: {', '.join(limits)}"
    if summary.transaction_version is not None:
        yield describe_transaction_version(summary.transaction_version)
    yield f"grown since {summary.last_look}" if summary.last_look else "growth: shown from the next run on"


TXN_APPLICATIONS = Kind(
    "txn-applications",
    "Transactional ids, grouped by the application that uses them.",
    row=ApplicationRow,
    summary=ApplicationsSummary,
    text=Text(
        columns=("called", "what", "ids", "open", "oldest_for", "timeout", "grown_by?", "last_started?", "remarks?"),
        wide=(
            *("oldest_open", "connector?", "naming?", "members", "highest", "described", "expires?", "memory_bytes"),
            "shares_prefix_with?",
        ),
        lines=_closing_lines,
        empty="No transactional id is known.",
    ),
)
