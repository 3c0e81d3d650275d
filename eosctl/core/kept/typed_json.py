"""JSON that others may have written: read as it is, or into typed classes, with errors in plain words."""

from __future__ import annotations

import json
import re
from typing import TypeVar

T = TypeVar("T")

_MISSING = re.compile(r"Object missing required field `(?P<member>.+?)`(?: - at `(?P<place>.+)`)?")
_WRONG = re.compile(r"(?P<what>.+?)(?: - at (?P<key>key in )?`(?P<place>.+)`)?")


class WrongMemberError(ValueError):
    """A member that `is_missing`, or has a wrong value; the text names it: `sources[0] has no 'name'`."""

    def __init__(self, words: str, *, is_missing: bool = False) -> None:
        super().__init__(words)
        self.is_missing = is_missing


def json_of(text: bytes | str, *, mend: bool = False) -> object:
    """Return the value of a JSON text in UTF-8.

    Raises ValueError for text that is not JSON, is nested too deep, or spells half of a surrogate pair (`"\\ud800"`),
    which no name or text of Kafka's, and nothing sent or printed, can hold. With `mend` it becomes a question mark.
    """
    text = text if isinstance(text, str) else text.decode("utf-8-sig")
    try:
        found = json.loads(text)
        if _MAY_BE_HALF.search(text):
            found = _mended(found) if mend else _refuse_half_surrogates(found)
    except RecursionError as exc:
        raise ValueError("it is nested too deep") from exc
    return found


_MAY_BE_HALF = re.compile(r"\\u[dD]|[\ud800-\udfff]")


def _refuse_half_surrogates(data: T) -> T:
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError as exc:
        raise WrongMemberError("a text in it has half of a surrogate pair") from exc
    return data


def _mended(data: object) -> object:
    return json.loads(json.dumps(data, ensure_ascii=False).encode("utf-8", "replace"))


def typed(data: object, kind: type[T]) -> T:
    """Convert `data`, as `json.loads` returns it, to a `kind` (a dataclass or a Struct).

    Unknown members are ignored. Raises WrongMemberError.
    """
    import msgspec  # only for readers

    try:
        _refuse_half_surrogates(data)
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as exc:
        raise _in_words(str(exc)) from None
    except RecursionError as exc:
        raise WrongMemberError("it is nested too deep") from exc


def _in_words(text: str) -> WrongMemberError:
    """Translate msgspec's "Expected `int`, got `str` - at `$.tally.keys`" into "tally.keys: expected int, got str"."""
    missing = _MISSING.fullmatch(text)
    if missing is not None:
        return WrongMemberError(f"{_place(missing['place']) or 'it'} has no {missing['member']!r}", is_missing=True)
    wrong = _WRONG.fullmatch(text)
    assert wrong is not None  # noqa: S101 - it fits every text of one line
    what = wrong["what"].replace("`", "").replace(" | ", " or ")
    what = what[:1].lower() + what[1:]
    return WrongMemberError(f"{_place(wrong['place'])}: {what}" if _place(wrong["place"]) else what)


def _place(path: str | None) -> str:
    return (path or "").removeprefix("$").removeprefix(".")
