"""`eosctl explain` and `eosctl schema`: the meanings of codes, words and documents."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from eosctl.errors import UsageError

from .frame.options import EosctlCommand

if TYPE_CHECKING:
    from eosctl.report import Report


@click.command(cls=EosctlCommand)
@click.argument("words", metavar="[CODE|NAME|FILE|TEXT|-]...", required=False, nargs=-1)
def explain(words: tuple[str, ...]) -> Report:
    """Explain a code, an exception, a stack trace or a log.

    CODE is a code of an error, a warning, a finding or a gate, an exit code, a term (zombie, fencing, epoch, LSO,
    task-count record, global, dedicated, two-step upgrade), or the header of a column (OPEN-FOR). NAME names a failure
    of Connect, of a producer, Streams, Flink or a broker: the name of an exception, or words of its message.
    docs/codes.md and docs/failures.md have the same tables. Without an argument all codes and words are listed.

    FILE, stdin (`-`) and TEXT of several words or lines are searched for failures: stack traces, logs in any format, of
    any length; a FILE may be gzipped. Each failure is listed once, with its count and times, the most likely cause
    first; a consequence names its cause. Messages of the text are not printed, names in them are. A word that is a code
    is taken as the code; for a file of that name write ./FILE. Words with a slash are text where no file has that name
    and they are a sentence, an exception or a class (org/apache/kafka/X).

    The exit code is 0 if something was recognised, else 1. Needs no Kafka.

    \b
    Example:
      eosctl explain double_spelling
      eosctl explain ProducerFencedException
      eosctl connectors trace orders -o json | eosctl explain -
    """
    from eosctl.explain.operations import explain as explain_words
    from eosctl.explain.operations import list_entries

    return explain_words(words, stdin=sys.stdin.buffer) if words else list_entries()


@click.command(cls=EosctlCommand)
@click.argument("kind", required=False)
@click.option(
    "--all", "folder", metavar="DIR", help="Write every schema to this folder, a file each, and an index.json."
)
def schema(kind: str | None, folder: str | None) -> Report:
    """Print the JSON Schemas of `-o json`.

    Without KIND, the kinds are listed. With KIND, its schema (2020-12) is printed as is, ready for a validator; -o json
    prints it as data.schema. -o yaml prints the same document, -o ndjson its data.rows, one per line. Fields may be
    added to a kind, never renamed or removed.

    The kind config-file is the file with the profiles: an editor that knows its schema completes and checks it.
    YAML's language server takes it from a comment in the first line of that file, `# yaml-language-server:
    $schema=/path/to/config-file.schema.json`. Needs no Kafka.

    \b
    Example:
      eosctl schema fence-plan > fence-plan.schema.json
      eosctl schema --all schemas
    """
    from eosctl.explain.operations import list_kinds, show_schema, write_schemas

    if folder is not None:
        if kind is not None:
            raise UsageError("KIND and --all exclude each other", hint="--all writes every kind.")
        return write_schemas(folder)
    return list_kinds() if kind is None else show_schema(kind)
