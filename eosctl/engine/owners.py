"""Whose each key of a column is, and keys under new names: Arrow for the form of nearly all, odd ones one by one."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from eosctl.core.java.json import string_text
from eosctl.core.offsets.keys import PLAIN_KEY, key_owner, quoted_name, renamed_key

_PATTERN = f"^{PLAIN_KEY}$"


def owners_of(keys: pa.BinaryArray) -> pa.Array:
    """Whose each key is, as `key_owner` says; null where a key is nobody's."""
    names = pc.struct_field(pc.extract_regex(keys, _PATTERN), "connector").cast(pa.string())
    if names.null_count == 0:
        return names
    is_odd = pc.is_null(names)
    owners = (key_owner(key) for key in keys.filter(is_odd).to_pylist())
    odd = pa.array([owner and owner.connector for owner in owners], pa.string())
    return pc.replace_with_mask(names, is_odd, odd)


def renamed(keys: pa.Array, connectors: pa.Array, renames: Mapping[str, str]) -> pa.Array:
    """`keys` as they are once each of the `connectors` has its new name; all other bytes stay."""
    if not renames:
        return keys
    changes = pc.is_in(connectors, value_set=pa.array(list(renames), pa.string()))
    if not pc.any(changes).as_py():
        return keys
    quoted = {old: quoted_name(new) for old, new in renames.items()}
    plain = {old: string_text(old).encode("utf-8") for old in renames}
    rows = zip(keys.filter(changes).to_pylist(), connectors.filter(changes).to_pylist(), strict=True)
    new = [
        b"[" + quoted[name] + key[1 + len(plain[name]) :]
        if key.startswith(plain[name], 1) and key.startswith(b",", 1 + len(plain[name]))
        else _renamed(key, renames)
        for key, name in rows
    ]
    return pc.replace_with_mask(keys, changes, pa.array(new, pa.binary()))


def _renamed(key: bytes, renames: Mapping[str, str]) -> bytes:
    owner = key_owner(key)
    return key if owner is None else renamed_key(key, owner, renames[owner.connector])
