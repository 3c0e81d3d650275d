"""Reads files of offsets: record files, backups in Parquet, and KIP-875 bodies; and converts backups to lines.

A record file carries keys as bytes. A KIP-875 body carries only their meaning, so its entries take the spelling that
the store has, or without one the spelling that Connect's REST interface would write.

`offsets export --backup` converts a Parquet backup to lines, the format of small backups. It asks no broker.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.java.json import encode_key, encode_offset
from eosctl.core.kept.plan_file import yaml_of
from eosctl.core.kept.record_formats import read_dump
from eosctl.core.kept.record_lines import dump_columns
from eosctl.core.offsets.records import AmbiguousJsonError, OffsetKey, decode_key, strict_json
from eosctl.core.records import UNKNOWN, Headers
from eosctl.engine.backups.file import BackupFile, backup_lines, is_columnar, open_backup
from eosctl.engine.files import SpilledTable, SpillFile, in_large_pieces, spilled_if_several, tables_of
from eosctl.engine.incoming import belonging, incoming_table, with_keys, without_keyless
from eosctl.engine.stores import ColumnStore
from eosctl.errors import InputFileError, RefusedError, UsageError
from eosctl.offsets.files.rows import OFFSETS_EXPORT, ExportData, ExportSummary
from eosctl.offsets.files.rules import OFFSETS_ENTRY, entry_of
from eosctl.report import Report
from eosctl.state.backups import write_blocks

if TYPE_CHECKING:
    from eosctl.engine.columns import Table


def unpacked_blocks(backup: str, *, connectors: tuple[str, ...] = ()) -> Iterator[bytes]:
    """Yield the lines of a backup, many at a time; raise InputFileError."""
    return _unpacking(backup, connectors).blocks()


def unpack_backup(app: App, backup: str, *, connectors: tuple[str, ...] = (), path: str) -> Report:
    """Write the lines of a backup to a file, whole or not at all; raise InputFileError."""
    unpacking = _unpacking(backup, connectors)
    write_blocks(path, unpacking.blocks())
    kept = unpacking.kept
    return Report(
        kind=OFFSETS_EXPORT,
        summary=ExportSummary(records=unpacking.records, tombstones=unpacking.tombstones, records_read=kept.records),
        data=ExportData(file=path, topic=None, format="ndjson", backup=backup),
        target={"kafka_cluster_id": kept.cluster_id, "group_id": app.target.group_id},
    )


def _unpacking(backup: str, connectors: tuple[str, ...]) -> _Unpacking:
    """Open a Parquet backup; raise UsageError for another readable file: backups of a few keys are lines."""
    file = Path(backup)
    if file.is_file() and os.access(file, os.R_OK) and not is_columnar(file):
        raise UsageError(f"{backup} is no Parquet file", hint="Is it NDJSON? Then it holds lines already.")
    return _Unpacking(open_backup(backup), connectors)


@dataclass(slots=True)
class _Unpacking:
    """An open backup `kept`, and the numbers of `records` yielded so far and of `tombstones` among them."""

    kept: BackupFile
    connectors: tuple[str, ...]
    records: int = 0
    tombstones: int = 0

    def blocks(self) -> Iterator[bytes]:
        """Yield the lines, many at a time."""
        for rows in self.kept.tables(self.connectors):
            self.records += len(rows)
            self.tombstones += rows["value"].null_count
            yield backup_lines(rows, cluster_id=self.kept.cluster_id)


RECORD_FILE, BODY, BACKUP = "line {}", "offsets[{}]", "record {}"
"""The names of places in these files."""


class OffsetsFile(Struct, frozen=True):
    """The records of a file (INCOMING) that have a key, even one that Connect ignores; `keyless` counts the others.

    The keys of a body are a guess that the store may correct. `cautions` are what its format does not show.
    """

    name: str
    pieces: Sequence[Table | SpilledTable]
    keyless: int = 0
    places: str = RECORD_FILE
    cautions: Sequence[str] = ()

    def tables(self) -> Iterator[Table]:
        """Yield the records (INCOMING) in order; if there are many, some at a time."""
        return tables_of(self.pieces)

    def place(self, line: int) -> str:
        """Return the place of a record in the file: `offsets.ndjson, line 7`."""
        return f"{self.name}, {self.places.format(line)}"


def parse_offsets_file(
    file: Iterator[bytes],
    spool: SpillFile,
    *,
    name: str,
    connectors: Sequence[str] = (),
    body_of: str | None = None,
) -> OffsetsFile:
    """Parse a record file of any tool, a KIP-875 body (`GET /connectors/NAME/offsets`), or its ConfigMap, by its shape.

    `file` yields its lines. With `connectors`, only their records are kept; a body does not name its connector, so it
    needs exactly one, or `body_of`. Raises InputFileError that names file and line, UsageError, OSError if many records
    can't be put into `spool`.
    """
    named = connectors if body_of is None else [body_of]
    body, lines = _body(file, name=name, connectors=named)
    if body is None:
        dump = read_dump(lines, name=name)
        tables = map(incoming_table, dump_columns(dump, name=name))
        return replace(of_tables(tables, spool, name=name, connectors=connectors), cautions=tuple(dump.cautions))
    if len(named) != 1:
        raise UsageError(f"{name} does not name its connector", hint="Name the connector: --connector NAME.")
    [connector] = named
    rows = [_entry(entry, f"{name}, offsets[{number}]", number, connector) for number, entry in enumerate(body)]
    return OffsetsFile(name, [incoming_table([*zip(*rows, strict=True)])], places=BODY)


def of_tables(
    tables: Iterable[Table], spool: SpillFile, *, name: str, connectors: Sequence[str], places: str = RECORD_FILE
) -> OffsetsFile:
    """Collect the records of a file, of some connectors or of all; raise OSError as `parse_offsets_file`."""
    keyless = 0

    def keyed() -> Iterator[Table]:
        nonlocal keyless
        for table in tables:
            mine = belonging(table, connectors) if connectors else table
            found = without_keyless(mine)
            keyless += len(mine) - len(found)
            yield found

    pieces = list(spilled_if_several(in_large_pieces(keyed()), spool))
    return OffsetsFile(name, pieces, keyless, places)


Row = tuple[int, str, int, int, int, bytes | None, bytes | None, Headers]


def _body(
    file: Iterator[bytes], *, name: str, connectors: Sequence[str]
) -> tuple[list[object] | None, Iterable[bytes]]:
    """Return the list in `{"offsets": […]}`; for any other text return None and its lines, to be read as a record file.

    The first line shows a record file, so that a long one is not parsed as a whole. A ConfigMap has a body in an entry.
    """
    before = list[bytes]()
    for line in file:
        before.append(line)
        if line.strip():
            break
    first = before[-1].strip() if before else b""
    if first.startswith(_MANIFEST):
        content = b"".join(chain(before, file))
        return _body_of_manifest(yaml_of(_text(content, name), source=name, once=True), name, connectors), ()
    if not first.startswith(b"{"):
        return None, chain(before, file)
    offsets = _offsets_of(first, name=name, connectors=connectors)
    if offsets is None:
        return None, chain(before, file)
    if offsets is not _NO_JSON:
        if any(line.strip() for line in file):
            raise InputFileError(f"{name} holds more than a body", hint="Import one body at a time.")
        return offsets, ()
    content = b"".join(chain(before, file))
    offsets = _offsets_of(content, name=name, connectors=connectors)
    return (None if offsets is _NO_JSON else offsets), content.splitlines()


_NO_JSON: list[object] = []


def _offsets_of(text: bytes, *, name: str, connectors: Sequence[str] = ()) -> list[object] | None:
    """Return the list in a body; None for another document, `_NO_JSON` for text that is not JSON.

    Raises InputFileError for a body that different programs would read differently, as `offsets set` refuses it.
    """
    try:
        decoded = text.decode()
        document = json.loads(decoded)
    except (ValueError, RecursionError):
        return _NO_JSON
    if not isinstance(document, dict):
        return None
    is_manifest, offsets = document.get("kind") == _CONFIG_MAP, document.get("offsets")
    if not is_manifest and (not isinstance(offsets, list) or "topic" in document):
        return None
    try:
        strict_json(decoded)
    except AmbiguousJsonError as exc:
        raise InputFileError(f"{name}: {exc}", hint="Different programs would read different offsets.") from exc
    return _body_of_manifest(document, name, connectors) if is_manifest else offsets


_MANIFEST = (b"apiVersion:", b"kind:", b"metadata:", b"data:", b"---", b"# ")
_CONFIG_MAP = "ConfigMap"


def _text(content: bytes, name: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise InputFileError(f"{name} is not in UTF-8") from None


def _body_of_manifest(document: object, name: str, connectors: Sequence[str]) -> list[object]:
    """Return the list in a ConfigMap of Strimzi's; raise InputFileError for another document, or one without the entry.

    The body of a KafkaConnector is in `offsets.json` (strimzi/proposals 076), that of a MirrorMaker's connector in an
    entry that is called after it.
    """
    data = document.get("data") if isinstance(document, dict) and document.get("kind") == _CONFIG_MAP else None
    if not isinstance(data, dict):
        raise InputFileError(
            f"{name} is no ConfigMap with offsets", hint="`kubectl get configmap NAME -o yaml` prints one of them."
        )
    entries = {OFFSETS_ENTRY, *map(entry_of, connectors)} & data.keys()
    texts = {entry: data[entry] for entry in sorted(map(str, entries)) if isinstance(data[entry], str)}
    if len(texts) != 1:
        has = ", ".join(sorted(map(str, data))) or "none"
        raise InputFileError(
            f"{name} has {'several entries' if texts else 'no entry'} with the offsets of this connector",
            hint=f"It is {OFFSETS_ENTRY}, or the connector's name with -- for -> and .json. Entries: {has}.",
        )
    [(entry, text)] = texts.items()
    offsets = _offsets_of(text.encode(), name=f"{name}, {entry}")
    if offsets is None or offsets is _NO_JSON:
        raise InputFileError(f'{name}, {entry}: not a body: expected {{"offsets": […]}}')
    return offsets


def _entry(entry: object, place: str, number: int, connector: str) -> Row:
    if not isinstance(entry, dict) or not {"partition", "offset"} <= set(entry):
        raise InputFileError(f'{place}: expected {{"partition": {{…}}, "offset": {{…}} or null}}')
    partition, offset = entry["partition"], entry["offset"]
    if not isinstance(partition, dict) or not isinstance(offset, dict | None):
        raise InputFileError(f'{place}: "partition" is an object, "offset" an object or null')
    try:
        raw = encode_key(connector, partition)
        value = None if offset is None else encode_offset(offset)
    except UsageError as exc:
        raise InputFileError(f"{place}: {exc.message}", hint=exc.hint) from exc
    return number, "", UNKNOWN, UNKNOWN, UNKNOWN, raw, value, ()


def spelled(file: OffsetsFile, store: ColumnStore) -> OffsetsFile:
    """Replace guessed keys of `file` by the one spelling that the store has for the same source partition.

    Raises RefusedError if there are several.
    """
    if file.places != BODY:
        return file
    [incoming] = file.tables()
    keys: list[bytes] = incoming["key"].to_pylist()
    guesses = [key for key in map(decode_key, keys) if isinstance(key, OffsetKey)]
    by_identity: dict[str, list[_Spelling]] = {}
    newest = store.newest({key.connector for key in guesses}).select(["nothing", "timestamp_ms", "key"])
    for nothing, timestamp_ms, raw in zip(*(column.to_pylist() for column in newest.columns), strict=True):
        by_identity.setdefault(decode_key(raw).identity, []).append((not nothing, timestamp_ms, raw))
    rows = zip(guesses, incoming["line"].to_pylist(), strict=True)
    found = [_respelled(key, by_identity.get(key.identity, []), file.place(line)) for key, line in rows]
    return replace(file, pieces=[with_keys(incoming, found)])


_Spelling = tuple[bool, int, bytes]
"""Whether a key has a live value, the time of its newest record, and its bytes."""


def _respelled(key: OffsetKey, spellings: Sequence[_Spelling], place: str) -> bytes:
    """Return the live spelling, else the one deleted last, else `key`, as `offsets set` does."""
    live = sum(is_live for is_live, _at_ms, _raw in spellings)
    if live > 1:
        raise RefusedError(
            f"{place}: the store has {live} spellings of this source partition, and the file does "
            "not say which is meant; nothing was written",
            hint="`eosctl offsets lint` shows them; import a record file, which carries the key's bytes.",
        )
    return max(spellings, default=(False, 0, key.raw))[2]
