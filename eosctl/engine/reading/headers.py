"""Headers of records in a column: each as the member of a record file, null for none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from eosctl.core.record_file import decode_bytes, encode_bytes
from eosctl.core.records import Headers


def headers_text(headers: Headers) -> str | None:
    """Headers as the member of a record file; None for none."""
    members = [{"name": name, "value": encode_bytes(value)} for name, value in headers]
    return json.dumps(members, ensure_ascii=False, separators=(",", ":")) if members else None


def headers_of(text: str | None) -> Headers:
    """The inverse of `headers_text`."""
    return tuple((each["name"], decode_bytes(each["value"])) for each in json.loads(text)) if text else ()


def headers_at(topics: Any, partitions: Any, offsets: Any, headers: Mapping[tuple[str, int, int], Headers]) -> pa.Array:
    """The headers at some places, each as the member of a record file."""
    if not headers:
        return pa.nulls(len(topics), pa.string())
    places = zip(*(column.to_pylist() for column in (topics, partitions, offsets)), strict=True)
    return pa.array([headers_text(headers.get(place, ())) for place in places], pa.string())
