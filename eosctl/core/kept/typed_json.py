"""JSON as values of typed classes; where it does not fit them, in plain words which member is wrong."""

from __future__ import annotations

import re
from typing import TypeVar

T = TypeVar("T")

_MISSING = re.compile(r"Object missing required field `(?P<member>.+?)`(?: - at `(?P<place>.+)`)?")
_WRONG = re.compile(r"(?P<what>.+?)(?: - at (?P<key>key in )?`(?P<place>.+)`)?")


class WrongMemberError(ValueError):
    """A member that `is_missing`, or is not what it should be; the text says which, `sources[0] has no 'name'`."""

    def __init__(self, words: str, *, is_missing: bool = False) -> None:
        super().__init__(words)
        self.is_missing = is_missing


def typed(data: object, kind: type[T]) -> T:
    """`data`, as `json.loads` gives it, as a `kind` (a dataclass or a Struct); members that it lacks are left out.

    Raises WrongMemberError.
    """
    import msgspec  # not by those who only write

    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as exc:
        raise _in_words(str(exc)) from None


def _in_words(text: str) -> WrongMemberError:
    """msgspec's "Expected `int`, got `str` - at `$.tally.keys`" as "tally.keys: expected int, got str"."""
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
