"""Rows of `eosctl explain` about the dictionary of failures: an entry, and the entries found in a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Literal

from eosctl.core.wording import counted
from eosctl.failures.failure import Failure, Family, filled_in, quoted
from eosctl.foreign import arguments, printable
from eosctl.output.rows import Kind, Printed, Text
from eosctl.report import Report

Role = Literal["cause", "consequence", "suppressed"]


class VersionPart(Printed):
    """A difference in some versions."""

    versions: Annotated[str, "The versions of Kafka, in words."]
    words: Annotated[str, "What is otherwise in them."]


class EntryPart(Printed):
    """An entry of the dictionary of failures."""

    family: Annotated[Family, "Whose failure it is."]
    name: Annotated[str, "What people call it."]
    causes: Annotated[list[str], "What may have caused it, the most likely first."]
    is_not: Annotated[list[str], "What it is not, though it looks like it."]
    fix: Annotated[str, "What to do about it; ID, NAME and TOPIC stand for what is not known."]
    commands: Annotated[list[str], "The command lines of eosctl that check it, or show more."]
    versions: Annotated[list[VersionPart], "What is otherwise in some versions."]
    said_by: Annotated[list[str], "Where Kafka says it: class and versions."]
    page: Annotated[str, "Where the documentation has it."]
    of_transactions: Annotated[bool, "Whether it is about transactions or fencing."]


def entry_part(
    failure: Failure, names: Mapping[str, str] | None = None, *, fix: str = "", causes: Sequence[str] = ()
) -> EntryPart:
    """Make the part of an entry, with the names in its commands where known.

    `fix` and `causes` replace the entry's own.
    """
    given = quoted(names or {})
    return EntryPart(
        family=failure.family,
        name=failure.name,
        causes=list(causes or failure.causes),
        is_not=list(failure.is_not),
        fix=filled_in(fix or failure.fix, given),
        commands=[filled_in(each, given) for each in failure.commands],
        versions=[VersionPart(versions=note.versions, words=note.words) for note in failure.versions],
        said_by=list(failure.said_by),
        page=failure.anchor,
        of_transactions=failure.of_transactions,
    )


class FailureRow(Printed):
    """A failure that a text has."""

    code: Annotated[str, "The code of the failure; `eosctl explain CODE` says what it means."]
    role: Annotated[Role, "Whether it is a cause, only the consequence of another one, or was suppressed."]
    explained_by: Annotated[list[str], "The codes of the failures in the text that it is a consequence of."]
    meaning: Annotated[str, "What it means."]
    count: Annotated[int, "How many times the text has it."]
    first_line: Annotated[int, "The line of the text that has it first."]
    last_line: Annotated[int, "The line of the text that has it last."]
    first_time: Annotated[str | None, "The time there, as the text has it; null where it has none."]
    last_time: Annotated[str | None, "The time of the last one, as the text has it; null where it has none."]
    transactional_ids: Annotated[list[str], "The first transactional ids that the text has with it."]
    tasks: Annotated[list[str], "The first tasks that the text has with it, as CONNECTOR-TASK."]
    topic_partitions: Annotated[list[str], "The first partitions that the text has with it, as TOPIC-PARTITION."]
    topics: Annotated[list[str], "The first topics that the text has with it."]
    groups: Annotated[list[str], "The first groups that the text has with it."]
    connectors: Annotated[list[str], "The first connectors that the text has with it."]
    settings: Annotated[list[str], "The first settings that the text has with it."]
    classes: Annotated[list[str], "The first classes that the text says are missing, or do not fit."]
    needed_by: Annotated[list[str], "The classes that needed them, by the first stack frame."]
    jars: Annotated[list[str], "The jars of those, where the stack frame has them."]
    entry: Annotated[EntryPart, "The entry of the dictionary."]


class UnknownPart(Printed):
    """Exceptions that no entry fits."""

    outermost: Annotated[str, "The class of the outermost exception."]
    deepest: Annotated[str, "The class of the deepest exception."]
    count: Annotated[int, "How many times the text has them."]
    line: Annotated[int, "The line of the text that has them first."]


class FailuresSummary(Printed):
    """The number of failures, lines and traces."""

    failures: Annotated[int, "How many failures were recognised."]
    lines: Annotated[int, "How many lines were read."]
    traces: Annotated[int, "How many stack traces and exceptions were in them."]


class FailuresData(Printed):
    """The source of the text, and its unknown exceptions."""

    source: Annotated[str, "What was read: a file, stdin, or the argument."]
    unknown: Annotated[list[UnknownPart], "The exceptions that no entry fits; their messages are left out."]
    more_unknown: Annotated[int, "How many further traces no entry fits."]


def entry_lines(entry: EntryPart) -> Iterator[str]:
    """Yield the lines of an entry that follow its meaning."""
    if not entry.of_transactions:
        yield "  This is no failure of a transaction."
    if entry.causes:
        yield "  why, the most likely first:"
        yield from (f"    {number}. {cause}" for number, cause in enumerate(entry.causes, 1))
    for number, each in enumerate(entry.is_not):
        yield f"  {'what it is not: ' if not number else '                '}{each}"
    yield f"  what to do: {entry.fix.rstrip('.')}."
    yield from (f"  see: {each}" for each in entry.commands)
    yield from (f"  Kafka {each.versions}: {each.words}." for each in entry.versions)
    yield from (f"  said by: {each}" for each in entry.said_by)


def _failures(report: Report) -> Iterator[str]:
    for number, row in enumerate(report.rows_of(FailureRow), 1):
        yield from _failure(number, row)
        yield ""
    data, summary = report.data_of(FailuresData), report.summary_of(FailuresSummary)
    for each in data.unknown:
        causes = each.outermost if each.outermost == each.deepest else f"{each.outermost}, caused by {each.deepest}"
        yield f"not known: {printable(causes)} ({_times(each.count)}, line {each.line})"
    if data.more_unknown:
        yield f"not known: {counted(data.more_unknown, 'further trace')}"
    yield (
        f"{counted(summary.failures, 'failure')} recognised in {counted(summary.lines, 'line')} of {data.source} "
        f"with {counted(summary.traces, 'stack trace')}"
    )


def _failure(number: int, row: FailureRow) -> Iterable[str]:
    consequence = f" of {', '.join(row.explained_by)}" if row.explained_by else ""
    yield f"{number}. {row.code} ({row.role}{consequence}): {row.entry.name}"
    yield f"  {row.meaning}"
    yield f"  in the text: {_where(row)}"
    for label, names in (
        ("transactional ids", row.transactional_ids), ("tasks", row.tasks), ("partitions", row.topic_partitions),
        ("topics", row.topics), ("groups", row.groups), ("connectors", row.connectors), ("settings", row.settings),
        ("classes", row.classes), ("needed by", row.needed_by), ("jars", row.jars),
    ):  # fmt: skip
        if names:
            yield f"  {label}: {printable(', '.join(names))}"
    if row.role == "cause":
        yield from entry_lines(row.entry)
    else:
        yield f"  eosctl explain {arguments(row.code)}"


def _where(row: FailureRow) -> str:
    if row.count == 1:
        return f"line {row.first_line:,}" + (f", {row.first_time}" if row.first_time else "")
    times = f", {row.first_time} to {row.last_time}" if row.first_time else ""
    return f"{_times(row.count)}, lines {row.first_line:,} to {row.last_line:,}{times}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


FAILURES = Kind(
    "failures",
    "The failures that a stack trace or a log has, the most likely cause first.",
    row=FailureRow,
    summary=FailuresSummary,
    data=FailuresData,
    text=Text(columns=(), lines=_failures, prose=True),
)
