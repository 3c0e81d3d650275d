"""Source partitions and offsets as people type them, or write them into a body: one JSON value and nothing else.

Topics are read as Jackson reads them: it ignores anything after the first value and uses the last of two members with
one name. Typed input is stricter: a slip of the hand must not become another offset.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from eosctl.core.offsets.records import OffsetKey, decode_key
from eosctl.errors import UsageError

_PARTITION_HINT = 'Write JSON, say {"filename":"/tmp/x"}.'
_OFFSET_HINT = 'Write a JSON object, say {"position":0}; or use reset.'


def typed_partition(connector: str, text: str) -> OffsetKey:
    """Return the key for a source partition typed as JSON, to match with; raises UsageError."""
    _parse_strictly(text, what="a source partition", hint=_PARTITION_HINT)
    key = decode_key(f"[{json.dumps(connector)},{text}]".encode())
    if not isinstance(key, OffsetKey):
        raise UsageError(f"{text!r} is not a source partition", hint=_PARTITION_HINT)
    return key


def typed_offset(text: str) -> Mapping[str, object]:
    """Return the members of an offset typed as JSON; raises UsageError unless it is an object."""
    offset = _parse_strictly(text, what="an offset", hint=_OFFSET_HINT)
    if not isinstance(offset, dict):
        raise UsageError(f"{text!r} is not an offset", hint=_OFFSET_HINT)
    return offset


def _parse_strictly(text: str, *, what: str, hint: str) -> object:
    """Parse `text` strictly as JSON.

    Raises UsageError unless it is a single JSON value that all parsers read alike.
    """
    try:
        text.encode()  # a command line may have bytes that are no text
        return strict_json(text)
    except json.JSONDecodeError as exc:
        more = exc.msg.startswith("Extra data")
        reason = (
            f"nothing may follow the JSON value: {text[exc.pos :]!r}"
            if more
            else f"{exc.msg} at character {exc.pos + 1}"
        )
    except AmbiguousJsonError as exc:
        reason = str(exc)
    except (ValueError, RecursionError):
        reason = "it is no JSON"
    raise UsageError(f"{text!r} is not {what}: {reason}", hint=hint)


class AmbiguousJsonError(ValueError):
    """JSON that is read differently by different programs."""


def strict_json(text: str) -> object:
    """Parse one JSON text; raises AmbiguousJsonError, and ValueError and RecursionError for text that is not JSON."""
    return _DECODER.decode(text)


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _value in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise AmbiguousJsonError(f"member {twice!r} is given twice")
    return members


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise AmbiguousJsonError(f"{text} is beyond every floating-point number")
    return number


def _refuse_constant(name: str) -> object:
    raise AmbiguousJsonError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_members, parse_float=_finite, parse_constant=_refuse_constant)
