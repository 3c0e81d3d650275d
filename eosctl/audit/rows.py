"""Rows of `audit`: findings with their places, and each connector's verdict with its evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum, unique
from typing import Annotated

from eosctl.foreign import printable
from eosctl.output.cells import TOTAL, summary_lines
from eosctl.output.rows import Counts, Kind, Printed, Text, Time
from eosctl.output.text import finding_lines
from eosctl.report import Report


@unique
class Verdict(StrEnum):
    """The log's proof about a connector in a window."""

    EXACTLY_ONCE = "exactly_once"
    NOT_EXACTLY_ONCE = "not_exactly_once"
    UNPROVEN = "unproven"


class AuditRow(Printed):
    """A finding in the log."""

    severity: Annotated[str, "`error`, `warning` or `info`; only errors count against the connector."]
    code: Annotated[str, "What was found; `eosctl explain CODE` has more."]
    connector: Annotated[str, "The connector that was audited."]
    topic: Annotated[str, "The topic."]
    partition: Annotated[int, "The partition."]
    first_offset: Annotated[int | None, "The offset of the first one."]
    last_offset: Annotated[int | None, "The offset of the last one."]
    count: Annotated[int, "How many there are: of what, the message says."]
    producer_id: Annotated[int | None, "Who wrote it; null where that is nobody in particular."]
    producer_epoch: Annotated[int | None, "The producer epoch of the first one."]
    transactional_id: Annotated[str | None, "The producer's transactional id; null where it has none or none is known."]
    at_ms: Annotated[int | None, "The timestamp of the first one, in milliseconds since 1970."]
    at: Annotated[Time | None, "The same as text."]
    message: Annotated[str, "What is wrong, in a sentence."]
    fix: Annotated[str, "What to do about it."]
    evidence: Annotated[dict[str, object], "What else shows it."]

    def headline(self) -> str:
        """Return the code and the message in one line."""
        return f"{self.code}  {printable(self.message)}"


class WindowPart(Printed):
    """The requested window, and the proven part of it."""

    since_ms: Annotated[int | None, "From when on was asked for, in milliseconds since 1970; null: from the beginning."]
    until_ms: Annotated[int | None, "Until when; null: to the end."]
    proven_since_ms: Annotated[int | None, "From when on all was seen; null: from the beginning."]
    proven_until_ms: Annotated[int | None, "When the last transaction seen ended; without any, the last batch."]
    unseen: Annotated[list[str], "What was not seen, and why."]


class TransactionsPart(Printed):
    """Transactions of the connector's tasks that wrote to its output topics."""

    committed: Annotated[int, "Transactions that were committed; of brokers before transaction version 2, at least."]
    aborted: Annotated[int, "Transactions that were aborted, counted as the committed ones."]
    open: Annotated[int, "Transactions that had not ended."]


class ProducerPart(Printed):
    """A producer that wrote to an output topic."""

    transactional_id: Annotated[str | None, "Its transactional id, as far as that is known."]
    producer_id: Annotated[int, "Its producer id; -1 for producers without one."]
    epochs: Annotated[list[int], "Its lowest and its highest epoch."]
    from_ms: Annotated[int | None, "When it first wrote, in milliseconds since 1970."]
    to_ms: Annotated[int | None, "When it last wrote, or its last transaction ended."]
    records: Annotated[int, "Its committed records."]
    identified_by: Annotated[str, "How its id is known: coordinator, transaction_log, offsets_record or unknown."]
    owner: Annotated[str, "task, connector NAME (of the same group), the application's kind, plain, or unknown."]


class SourcePartitionPart(Printed):
    """A source partition whose offset was committed in the window."""

    key: Annotated[str, "The key of the offsets record, as text."]
    source_partition: Annotated[dict[str, object] | None, "What the source calls it; null where the key has none."]
    commits: Annotated[int, "How many committed offsets of it were read."]
    transactional_id: Annotated[str | None, "Who committed it last, as far as that is known."]
    producer_id: Annotated[int, "Its producer id."]
    producer_epoch: Annotated[int, "Its producer epoch."]
    at_ms: Annotated[int | None, "When that transaction ended, in milliseconds since 1970."]


class AuditedConnector(Printed):
    """The log's proof about one connector."""

    connector: Annotated[str, "The connector."]
    topics: Annotated[list[str], "The output topics that were read."]
    offsets_topics: Annotated[list[str], "The offsets topics that were read; the one in use comes first."]
    window: Annotated[WindowPart, "What was asked for, and what is proven."]
    transactions: Annotated[TransactionsPart, "Its transactions."]
    records: Annotated[int, "Its committed records."]
    bytes: Annotated[int, "The size of all batches that were read, by any producer, aborted ones included."]
    producers: Annotated[list[ProducerPart], "Who wrote to the output topics."]
    source_partitions: Annotated[list[SourcePartitionPart], "Its source partitions, by key; at most 1,000 of them."]
    source_partition_count: Annotated[int, "How many source partitions there are."]
    verdict: Annotated[Verdict, "What is proven."]
    why: Annotated[str, "Why, in a sentence."]
    unproven: Annotated[list[str], "All for which nothing can be proven, whatever the verdict is."]
    values: Annotated[list[str], "What was read for --unique and --sequence, and what was left out."]
    not_covered: Annotated[
        list[str], "What may be missing or twice without a trace in the log, by the connector's config as it is now."
    ]


class AuditSummary(Printed):
    """The verdict, and how much was seen."""

    verdict: Annotated[Verdict, "What is proven."]
    transactions: Annotated[int, "Committed transactions.", TOTAL]
    records: Annotated[int, "Committed records.", TOTAL]
    bytes: Annotated[int, "The size of the batches that were read."]
    counts: Annotated[Counts, "Findings by severity."]


class AuditData(Printed):
    """The audited connectors and the page, beside the findings."""

    connectors: Annotated[list[AuditedConnector], "The connectors that were audited."]
    file: Annotated[str | None, "The page of --report; null without one."]


def audit_lines(report: Report) -> Iterable[str]:
    """Yield the verdict and its reasons, the findings, what was not seen, and the numbers."""
    data = report.data_of(AuditData)
    for each in data.connectors:
        yield f"{printable(each.connector)}: {each.verdict}. {printable(each.why)}"
        yield f"topics: {_names(each.topics)}; offsets: {_names(each.offsets_topics)}"
        yield f"proven: {proven_text(each.window)}"
        yield from (f"values: {printable(text)}" for text in each.values)
        yield from (f"not covered: {printable(text)}" for text in each.not_covered)
        yield from (f"not seen: {printable(text)}" for text in each.window.unseen)
        if each.verdict is Verdict.NOT_EXACTLY_ONCE:  # else they are why
            yield from (f"also not proven: {printable(text)}" for text in each.unproven)
        yield ""
    if report.rows:
        yield from finding_lines(report)
    else:
        yield from summary_lines(report)


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(printable, names))


def proven_text(window: WindowPart) -> str:
    """Describe the proven window in words."""
    from eosctl.core.wording import rfc3339

    if window.proven_until_ms is None:
        return "nothing"
    return f"from {rfc3339(window.proven_since_ms) or 'the beginning'} to {rfc3339(window.proven_until_ms)}"


def severity_of(rows: Iterable[AuditRow]) -> Mapping[str, int]:
    """Count the findings of each severity."""
    from eosctl.core.findings import SEVERITIES

    found = [row.severity for row in rows]
    return {severity: found.count(severity) for severity in SEVERITIES}


AUDIT = Kind(
    "audit",
    "Whether a connector was exactly-once in a window, as the log proves it.",
    row=AuditRow,
    summary=AuditSummary,
    data=AuditData,
    text=Text(columns=(), lines=audit_lines),
)
