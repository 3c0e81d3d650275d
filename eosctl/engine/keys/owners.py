"""The connectors that keys belong to, and keys under new names.

Arrow handles the usual form of keys, Python the others one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eosctl.core.java.json import string_text
from eosctl.core.offsets.keys import PLAIN_KEY, key_owner, quoted_name, renamed_key
from eosctl.engine.columns import cut_column, cuts_of

_PATTERN = f"^{PLAIN_KEY}$".replace("?P<connector>", "?:")
_NAME_FROM, _BEHIND_NAME = 2, b'",'
_COMMA_FIRST = b'[",'
"""The beginning of a key whose connector's name begins with a comma: its first `",` is not behind the name."""


def owners_of(keys: pa.BinaryArray) -> pa.Array:
    """Return the connector of each key, as `key_owner` does; null for a key of no connector."""
    matches = pc.and_not(pc.match_substring_regex(keys, _PATTERN), pc.starts_with(keys, _COMMA_FIRST))
    is_plain = pc.fill_null(matches, fill_value=False)
    names = _names_in(keys, is_plain)
    if pc.all(is_plain).as_py() is not False:
        return names
    is_odd = pc.invert(is_plain)
    owners = (key_owner(key) for key in keys.filter(is_odd).to_pylist())
    odd = pa.array([owner and owner.connector for owner in owners], pa.string())
    return pc.replace_with_mask(names, is_odd, odd)


def _names_in(keys: pa.BinaryArray, is_plain: pa.Array) -> pa.Array:
    """Cut the connectors out of the plain `keys`: a pattern that captures the name takes twice as long."""
    if not len(keys):
        return pa.array([], pa.string())
    starts, _lengths, data = cuts_of(keys)
    ends: npt.NDArray[np.integer[Any]] = (
        pc.find_substring(keys, _BEHIND_NAME).fill_null(0).to_numpy(zero_copy_only=False)
    )
    wanted = is_plain.to_numpy(zero_copy_only=False)
    cuts = np.zeros(2 * len(keys) + 1, np.int64)
    cuts[:-1:2], cuts[1::2] = starts + np.where(wanted, _NAME_FROM, 0), starts + np.where(wanted, ends, 0)
    cuts[-1] = cuts[-2]
    rows = pa.array(np.arange(0, len(cuts) - 1, 2), mask=~wanted)
    return cut_column(cuts, data).take(rows).cast(pa.string())


def renamed(keys: pa.Array, connectors: pa.Array, renames: Mapping[str, str]) -> pa.Array:
    """Put each connector's new name into its keys; all other bytes stay."""
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
    return pc.replace_with_mask(keys, changes, pa.array(new, keys.type))


def _renamed(key: bytes, renames: Mapping[str, str]) -> bytes:
    owner = key_owner(key)
    return key if owner is None else renamed_key(key, owner, renames[owner.connector])
