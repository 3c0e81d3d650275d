"""The reports of `eosctl schema` and `eosctl explain`. Touches no cluster."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import IO, BinaryIO, cast
from zlib import error as ZlibError  # noqa: N812 - an exception of this name is read as one

from msgspec import UNSET
from msgspec.structs import replace

from eosctl.codes import Code
from eosctl.core.wording import did_you_mean
from eosctl.errors import InputFileError, NotFoundError
from eosctl.explain.entries import known_entries
from eosctl.explain.kinds import all_kinds, declared_kinds, schema_of
from eosctl.explain.rows import (
    EXPLAIN,
    SCHEMA,
    SCHEMA_FILES,
    SCHEMA_LIST,
    EntriesSummary,
    ExplainedRow,
    KindRow,
    KindsSummary,
    KindSummary,
    SchemaData,
    SchemaFiles,
)
from eosctl.failures.rows import entry_part
from eosctl.failures.rules import BY_CODE, entries_named, nearest_name
from eosctl.failures.tally import lines_of, recognise
from eosctl.machine.files import write_whole
from eosctl.output.rows import words_of_columns
from eosctl.profiles.file_format import CONFIG_FILE, config_schema
from eosctl.profiles.file_format import WHAT as CONFIG_FILE_IS
from eosctl.report import Report


def list_kinds() -> Report:
    """List every kind of document, by name, and the file that eosctl reads."""
    rows = [KindRow(kind=name, what=what) for name, what in _names().items()]
    return Report(kind=SCHEMA_LIST, rows=rows, summary=KindsSummary(kinds=len(rows)))


def _names() -> dict[str, str]:
    return dict(sorted([*all_kinds().items(), (CONFIG_FILE, CONFIG_FILE_IS)]))


def show_schema(kind: str) -> Report:
    """Return the schema of one kind. Raises NotFoundError, which suggests names of similar spelling."""
    if kind not in _names():
        raise NotFoundError(f"there is no kind {kind!r}", hint=_nearest(kind, _names(), listing="eosctl schema"))
    return Report(kind=SCHEMA, summary=KindSummary(kind=kind), data=SchemaData(schema=_schema(kind)))


def _schema(name: str) -> dict[str, object]:
    return config_schema() if name == CONFIG_FILE else schema_of(name)


def write_schemas(folder: str) -> Report:
    """Write a file for each schema and an index of them; raises InputFileError if the folder can't be written to."""
    where, listed = Path(folder).expanduser(), list_kinds()
    index = [{"kind": name, "what": what, "file": f"{name}.schema.json"} for name, what in _names().items()]
    files = {f"{name}.schema.json": _schema(name) for name in _names()} | {"index.json": {"schemas": index}}
    try:
        where.mkdir(parents=True, exist_ok=True)
        for name, document in files.items():
            text = f"{json.dumps(document, indent=2)}\n".encode()
            write_whole(where / name, partial(_write, text), mode=0o644, synced=False)
    except OSError as exc:
        reason = exc.strerror or exc
        raise InputFileError(f"cannot write {where}: {reason}", hint="Check the path and its rights.") from exc
    return replace(listed, kind=SCHEMA_FILES, data=SchemaFiles(folder=str(where)))


def _write(text: bytes, file: IO[bytes]) -> None:
    file.write(text)


def _nearest(word: str, known: Iterable[str], *, listing: str) -> str:
    return did_you_mean(word, known, most=5, otherwise=f"See all of them: {listing}")


def list_entries() -> Report:
    """List every code and word, by type."""
    return _entries(known_entries())


def explain(words: Sequence[str], *, stdin: BinaryIO) -> Report:
    """Explain the words of a command line by the first of these that matches.

    A code, a word or a column; `-`, which is a log on stdin; a file; the common name of a failure; a text of several
    words or lines, searched for failures. Raises NotFoundError, which suggests names of similar spelling, and
    InputFileError for a file that can't be read.
    """
    text = " ".join(words)
    entries = [*known_entries(), *known_columns()]
    if found := [entry for entry in entries if entry.casefold() == text.casefold()]:
        return _entries(found)
    if text == _STDIN:
        return recognise(lines_of(stdin), source="stdin")
    if len(words) == 1 and (path := _file(text)) is not None:
        return _recognise_file(path, text)
    declared = {str(entry): entry for entry in known_entries()}
    if failures := [declared[known.code] for known in entries_named(text)]:
        return _entries(failures)
    if any(map(str.isspace, text)):
        return recognise(text.splitlines(), source="the argument")
    if (report := recognise([text], source="the argument")).rows:
        return report
    listing = _nearest(text, entries, listing="eosctl explain")
    raise NotFoundError(f"there is no code {text!r}", hint=nearest_name(text, otherwise=listing))


_STDIN = "-"
_TEXT = re.compile(r"\n|: |(?:Exception|Error)(?::|$)|^(?:com|io|java|javax|net|org)/(?:[\w-]+/)+[A-Z][\w$]*$")
_SUFFIXES = (".log", ".gz", ".txt", ".json", ".out", ".err", ".trace")


def _file(name: str) -> BufferedReader | None:
    """Open the file of that name; return None where the word names no file. Raises InputFileError.

    Words with a slash are text where no file has that name and they have the shape of a sentence, of an exception, or
    of a class: `NoClassDefFoundError: org/apache/X`, `org/apache/X`.
    """
    is_text = _TEXT.search(name) is not None or (" " in name and not name.endswith(_SUFFIXES))
    if not os.path.lexists(name) and (is_text or not (os.sep in name or name.endswith(_SUFFIXES))):
        return None
    try:
        return Path(name).expanduser().open("rb")
    except OSError as error:
        raise _unreadable(name, error) from None


def _recognise_file(file: BufferedReader, name: str) -> Report:
    """Recognise the failures in a file, gzipped or not, as rotated logs are. Raises InputFileError."""
    with file:
        try:
            if not file.peek(2).startswith(b"\x1f\x8b"):
                return recognise(lines_of(file), source=name)
            import gzip

            with gzip.open(file) as unpacked:
                return recognise(lines_of(cast(BinaryIO, unpacked)), source=name)
        except (OSError, EOFError, ZlibError) as error:
            raise _unreadable(name, error) from None


def _unreadable(name: str, error: Exception) -> InputFileError:
    reason = error.strerror if isinstance(error, OSError) else None
    return InputFileError(f"can't read {name}: {reason or error}")


def known_columns() -> list[Code]:
    """Return an entry for each column; columns of several kinds with the same words are one entry."""
    kinds_of: dict[tuple[str, str], list[str]] = {}
    for name, kind in declared_kinds().items():
        for column in words_of_columns(kind):
            kinds_of.setdefault(column, []).append(name)
    return [
        Code(header, "column", f"{words} (In {', '.join(names)}.)")
        for (header, words), names in sorted(kinds_of.items())
    ]


def _entries(entries: list[Code]) -> Report:
    rows = [
        ExplainedRow(
            code=str(entry),
            type=entry.kind,
            meaning=entry.meaning,
            next=entry.next or None,
            entry=entry_part(BY_CODE[entry]) if entry in BY_CODE else UNSET,
        )
        for entry in entries
    ]
    return Report(kind=EXPLAIN, rows=rows, summary=EntriesSummary(entries=len(rows)))
