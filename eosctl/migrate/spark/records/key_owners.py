"""`key_owner` of whole columns: the form that nearly all keys have in Arrow, any other key by key."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from eosctl.core.offsets.keys import PLAIN_KEY, key_owner

_PATTERN = f"^{PLAIN_KEY}$"
_BEFORE, _AROUND = 1, 3  # bytes of a plain key before the quoted name; and with the quotes, to the name's end


def owners_of(keys: pa.BinaryArray) -> tuple[pa.Array, pa.Array, pa.Array]:
    """`connector`, `name_start` and `name_end` of RECORDS: those of `key_owner`, null where a key is nobody's."""
    found = pc.struct_field(pc.extract_regex(keys, _PATTERN), "connector")
    names = found.cast(pa.string())
    starts = pc.if_else(pc.is_valid(names), pa.scalar(_BEFORE, pa.int32()), pa.scalar(None, pa.int32()))
    ends = pc.add(pc.binary_length(found), pa.scalar(_AROUND, pa.int32()))
    if names.null_count == 0:
        return names, starts, ends
    is_odd = pc.is_null(names)
    owners = [key_owner(key) or (None, None, None) for key in keys.filter(is_odd).to_pylist()]
    odd = zip(*owners, strict=True)
    connectors, name_starts, name_ends = (
        pc.replace_with_mask(column, is_odd, pa.array(values, column.type))
        for column, values in zip((names, starts, ends), odd, strict=True)
    )
    return connectors, name_starts, name_ends
