"""Backups as columns: a line of a record file for each of many records, with what is written over it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eosctl.core.record_file import UNKNOWN, bytes_text
from eosctl.engine.columns import one_array

AT_ONCE = 50_000
"""Rows that are taken out of columns at a time."""
_BYTES_AT_ONCE = 1 << 26


def few_at_once(table: pa.Table) -> Iterator[pa.Table]:
    """The rows of a table, few at a time, of at most 64 MiB unless it is one: as text they are several times as long,
    and a column ends at 2 GiB."""
    for begin in range(0, len(table), AT_ONCE):
        yield from _small_enough(table.slice(begin, AT_ONCE))


def _small_enough(table: pa.Table) -> Iterator[pa.Table]:
    if len(table) < 2 or table.nbytes <= _BYTES_AT_ONCE:
        yield table
        return
    half = len(table) // 2
    yield from _small_enough(table.slice(0, half))
    yield from _small_enough(table.slice(half))


def record_lines(rows: pa.Table) -> bytes:
    """The lines of records: topic, partition, offset, timestamp_ms, key, value, and `headers` if any.

    `offset` is null or -1 where there is no record, `headers` are their member's JSON or null.
    """
    return _lines(rows, "}\n")


def backup_lines(rows: pa.Table, *, cluster_id: str | None) -> bytes:
    """The same of records over which `written` is put."""
    written = _json_texts(one_array(rows["written"]))
    return _lines(rows, ',"written":', written, f',"cluster_id":{json.dumps(cluster_id)}}}\n')


def _lines(rows: pa.Table, *more: str | pa.Array) -> bytes:
    batch = {name: one_array(rows[name]) for name in rows.column_names}
    topics = batch["topic"].dictionary_encode()
    texts = [json.dumps(name, ensure_ascii=False) for name in topics.dictionary.to_pylist()]
    headers: Any = ""
    if "headers" in batch and batch["headers"].null_count < len(rows):
        headers = pc.fill_null(pc.binary_join_element_wise(',"headers":', batch["headers"], ""), "")
    columns = [
        '{"topic":', pa.array(texts, pa.string()).take(topics.indices),
        ',"partition":', batch["partition"].cast(pa.string()),
        _number("offset", batch["offset"]), _number("timestamp_ms", batch["timestamp_ms"]),
        ',"key":', _json_texts(batch["key"]), ',"value":', _json_texts(batch["value"]), headers, *more, "",
    ]  # fmt: skip
    lines = pc.binary_join_element_wise(*columns)
    text: bytes = lines.buffers()[2].slice(0, pc.sum(pc.binary_length(lines)).as_py() or 0).to_pybytes()
    return text


def _number(name: str, numbers: pa.Array) -> pa.Array:
    """`,"name":number` where it is known, else nothing."""
    known = pc.fill_null(pc.not_equal(numbers, UNKNOWN), fill_value=False)
    return pc.if_else(known, pc.binary_join_element_wise(f',"{name}":', numbers.cast(pa.string()), ""), "")


def _json_texts(values: pa.Array) -> pa.Array:
    """`bytes_text` of a column: in Arrow, unless a value is not UTF-8 or has characters that JSON escapes by number."""
    try:
        text = values.cast(pa.string())
    except pa.ArrowInvalid:
        text = None
    if text is None or pc.any(pc.match_substring_regex(text, r"[\x00-\x1f]")).as_py():
        return pa.array([bytes_text(value) for value in values.to_pylist()], pa.string())
    escaped = pc.replace_substring(pc.replace_substring(text, "\\", "\\\\"), '"', '\\"')
    return pc.fill_null(pc.binary_join_element_wise('"', escaped, '"', ""), "null")
