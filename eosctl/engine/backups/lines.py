"""Lines of a record file from columns, with the value that was written over each record."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eosctl.core.record_file import UNKNOWN, bytes_text
from eosctl.engine.columns import one_array

AT_ONCE = 50_000
"""Rows converted from columns at a time."""
_BYTES_AT_ONCE = 1 << 26
_FIRST_PLAIN = 0x20
"""The first character that JSON does not escape by its number."""
_BACKSLASH = 0x5C


def few_at_once(table: pa.Table, *, rows: int = AT_ONCE) -> Iterator[pa.Table]:
    """Yield the rows of a table in slices of at most `rows` rows and 64 MiB; a single row may be larger.

    As text they are several times as long, and a column ends at 2 GiB.
    """
    for begin in range(0, len(table), rows):
        yield from _small_enough(table.slice(begin, rows))


def _small_enough(table: pa.Table) -> Iterator[pa.Table]:
    if len(table) < 2 or table.nbytes <= _BYTES_AT_ONCE:
        yield table
        return
    half = len(table) // 2
    yield from _small_enough(table.slice(0, half))
    yield from _small_enough(table.slice(half))


def record_lines(rows: pa.Table) -> bytes:
    """Return records as lines: topic, partition, offset, timestamp_ms, key, value, and `headers` if any.

    `offset` is null or -1 if there is no record, `headers` are their member's JSON or null.
    """
    return _lines(rows, "}\n")


def backup_lines(rows: pa.Table, *, cluster_id: str | None) -> bytes:
    """Return records as lines like `record_lines`, with `written`, the value that was written over each."""
    written = _json_texts(one_array(rows["written"]))
    return _lines(rows, ',"written":', *written, f',"cluster_id":{json.dumps(cluster_id)}}}\n')


Piece: TypeAlias = "str | pa.Array"
"""A piece of all lines: the text that all have, or a column with the text of each. They are joined once, at the end."""


def _lines(rows: pa.Table, *more: Piece) -> bytes:
    batch = {name: one_array(rows[name]) for name in rows.column_names}
    headers: Piece = ""
    if "headers" in batch and batch["headers"].null_count < len(rows):
        headers = pc.fill_null(pc.binary_join_element_wise(',"headers":', batch["headers"], ""), "")
    pieces = [
        _beginnings(batch["topic"], batch["partition"]),
        *_number("offset", batch["offset"]), *_number("timestamp_ms", batch["timestamp_ms"]),
        ',"key":', *_json_texts(batch["key"]), ',"value":', *_json_texts(batch["value"]), headers, *more,
    ]  # fmt: skip
    lines = pc.binary_join_element_wise(*_fewer(pieces), "")
    text: bytes = lines.buffers()[2].slice(0, pc.sum(pc.binary_length(lines)).as_py() or 0).to_pybytes()
    return text


def _fewer(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Join neighbouring texts: each piece takes time in every line."""
    for is_text, some in groupby(pieces, key=lambda piece: isinstance(piece, str)):
        if is_text:
            yield "".join(some)
        else:
            yield from some


def _beginnings(topics: pa.Array, partitions: pa.Array) -> Piece:
    """Return the beginning of each line, up to its offset; there are few distinct ones, and often one."""
    of_topics, of_partitions = topics.dictionary_encode(), partitions.dictionary_encode()
    names = [json.dumps(name, ensure_ascii=False) for name in of_topics.dictionary.to_pylist()]
    numbers = of_partitions.dictionary.to_pylist()
    texts = [f'{{"topic":{name},"partition":{number}' for name in names for number in numbers]
    if len(texts) == 1:
        return texts[0]
    places = pc.add(pc.multiply(of_topics.indices, len(numbers)), of_partitions.indices)
    return pa.array(texts, pa.string()).take(places)


def _number(name: str, numbers: pa.Array) -> list[Piece]:
    """Return `,"name":number` where the number is known, else an empty text."""
    known = pc.fill_null(pc.not_equal(numbers, UNKNOWN), fill_value=False)
    pieces = [f',"{name}":', numbers.cast(pa.string())]
    if pc.all(known).as_py():
        return pieces
    return [pc.if_else(known, pc.binary_join_element_wise(*pieces, ""), "")]


def _json_texts(values: pa.Array) -> list[Piece]:
    """Return `bytes_text` of a column.

    All at once, unless a value is not UTF-8 or has characters that JSON escapes by number.
    """
    try:
        text = values.cast(pa.string())
    except pa.ArrowInvalid:
        text = None
    if text is None or (_characters(text) < _FIRST_PLAIN).any():
        return [pa.array([bytes_text(value) for value in values.to_pylist()], pa.string())]
    if (_characters(text) == _BACKSLASH).any():  # to look costs little of what it costs to replace none
        text = pc.replace_substring(text, "\\", "\\\\")
    text = pc.replace_substring(text, '"', '\\"')
    pieces = ['"', text, '"']
    return pieces if not text.null_count else [pc.fill_null(pc.binary_join_element_wise(*pieces, ""), "null")]


def _characters(texts: pa.Array) -> npt.NDArray[np.uint8]:
    """Return the bytes of texts, without copying them."""
    if not len(texts):
        return np.empty(0, np.uint8)
    _valid, offsets, data = texts.buffers()
    begins = np.frombuffer(offsets, np.int32)[texts.offset :]
    return np.frombuffer(data or b"", np.uint8)[begins[0] : begins[len(texts)]]
