"""Rows about eosctl itself: codes and words, schemas, completion scripts; and of a command that failed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import UNSET, UnsetType

from eosctl.failures.rows import EntryPart, entry_lines
from eosctl.foreign import printable
from eosctl.output.rows import Kind, Printed, Text
from eosctl.report import Report

_MOST_WHOLE = 8
"""Up to this many entries are shown with all details; more are shown with their meanings only."""
Shell = Literal["bash", "zsh", "fish"]


class ExplainedRow(Printed):
    """A code, a word or a column."""

    code: Annotated[str, "The code, the word, or the header of the column."]
    type: Annotated[str, "What it is."]
    meaning: Annotated[str, "What it means."]
    next: Annotated[str | None, "What to do about it; null where there is nothing to do."]
    entry: (
        Annotated[EntryPart, "What the dictionary of failures has of it; left out of what it has not."] | UnsetType
    ) = UNSET


class KindRow(Printed):
    """A kind of document."""

    kind: Annotated[str, "The name of the kind."]
    what: Annotated[str, "What a document of this kind says."]


class EntriesSummary(Printed):
    """The number of entries."""

    entries: Annotated[int, "How many entries there are."]


class KindsSummary(Printed):
    """The number of kinds."""

    kinds: Annotated[int, "How many kinds there are."]


class KindSummary(Printed):
    """The kind of document."""

    kind: Annotated[str, "The name of the kind."]


class SchemaData(Printed):
    """The schema."""

    schema: Annotated[dict[str, object], "The JSON Schema of the whole document."]


class SchemaFiles(Printed):
    """The folder."""

    folder: Annotated[str, "With --all: the folder with a file KIND.schema.json each, and index.json."] | UnsetType = (
        UNSET
    )


class CompletionData(Printed):
    """The script."""

    shell: Annotated[Shell, "The shell that it is for."]
    script: Annotated[str, "The script, to be loaded into the shell."]


class CommandOption(Printed):
    """An option of a command."""

    names: Annotated[list[str], "The spellings, as they are typed."]
    type: Annotated[str, "The type of its value: `flag` and `count` take none."]
    choices: Annotated[list[str] | None, "The values that it takes; null where they are not listed."]
    metavar: Annotated[str | None, "The value's name in help; null for what takes none."]
    default: Annotated[object, "The default; null where there is none."]
    required: Annotated[bool, "Whether the command needs it."]
    repeatable: Annotated[bool, "Whether it may be given several times."]
    env: Annotated[list[str], "The environment variables that give it, beside the profile's."]
    help: Annotated[str, "What it does."]


class CommandArgument(Printed):
    """An argument of a command."""

    name: Annotated[str, "The name in help."]
    type: Annotated[str, "The type of its value."]
    choices: Annotated[list[str] | None, "The values that it takes; null where they are not listed."]
    required: Annotated[bool, "Whether the command needs it."]
    repeatable: Annotated[bool, "Whether there may be several."]


class CommandRow(Printed):
    """A command, or a group of commands."""

    command: Annotated[str, "The words behind `eosctl`."]
    purpose: Annotated[str, "The group of `eosctl --help` that it belongs to."]
    help: Annotated[str, "What it does, in one sentence."]
    commands: Annotated[list[str], "The names of its sub-commands; none for a command that runs."]
    arguments: Annotated[list[CommandArgument], "Its arguments, in order."]
    options: Annotated[list[CommandOption], "Its own options."]


class CommandTreeSummary(Printed):
    """The number of commands."""

    commands: Annotated[int, "How many commands and groups of commands there are."]


class CommandTree(Printed):
    """The options of every command."""

    global_options: Annotated[list[CommandOption], "The options that every command takes."]


def _explained(report: Report) -> Iterable[str]:
    """Yield each entry as a sentence, with the next step below it or all that the dictionary of failures has."""
    rows = report.rows_of(ExplainedRow)
    for row in rows:
        yield f"{row.code} ({row.type}): {row.meaning}"
        if isinstance(row.entry, EntryPart) and len(rows) <= _MOST_WHOLE:
            yield from entry_lines(row.entry)
        elif row.next:
            yield f"  next: {row.next}"


def _schema(report: Report) -> Iterable[str]:
    yield from json.dumps(report.data_of(SchemaData).schema, indent=2).splitlines()


def _files(report: Report) -> Iterable[str]:
    folder = report.data_of(SchemaFiles).folder
    yield f"{len(report.rows)} schemas and index.json are in {printable(str(folder))}"


def _script(report: Report) -> Iterable[str]:
    yield from report.data_of(CompletionData).script.rstrip("\n").split("\n")


ERROR = Kind("error", "A command that failed before it had rows: see `errors`.")
EXPLAIN = Kind(
    "explain",
    "What codes and words mean.",
    row=ExplainedRow,
    summary=EntriesSummary,
    text=Text(columns=(), lines=_explained),
)
SCHEMA_LIST = Kind(
    "schema-list", "The kinds of documents, and the file that eosctl reads.", row=KindRow, summary=KindsSummary,
    data=SchemaFiles,
)  # fmt: skip
SCHEMA_FILES = SCHEMA_LIST.shown_as(Text(columns=(), lines=_files, prose=False))
SCHEMA = Kind(
    "schema",
    "The JSON Schema of one kind.",
    summary=KindSummary,
    data=SchemaData,
    text=Text(columns=(), lines=_schema, prose=False),
)
COMMAND_TREE = Kind(
    "command-tree",
    "Every command with its arguments and options, by `eosctl --help-json`.",
    row=CommandRow,
    summary=CommandTreeSummary,
    data=CommandTree,
    text=Text(columns=("command", "help")),
)
COMPLETION = Kind(
    "completion", "A completion script.", data=CompletionData, text=Text(columns=(), lines=_script, prose=False)
)
