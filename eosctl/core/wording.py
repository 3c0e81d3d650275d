"""Wording that messages share: counts (never "1 tasks" or "1 partition(s)"), times, and hints about wrong names.

The names that topics may have are those of `Topic.validate`, Kafka 4.3.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import overload

YEAR_10000_MS = 253_402_300_800_000
"""A timestamp is the client's choice: from here on its year has more than four digits."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COMMAND = re.compile(r"(?:eosctl|kafka-[a-z-]+\.sh|kubectl|systemctl|curl) \S")
"""The beginning of a command for a shell."""
_CALENDAR_YEARS = 400  # after which the calendar repeats itself, weekdays and all
_CALENDAR_MS = 146_097 * 86_400_000


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Format a count: `1 task`, `2 tasks`; `plural` is for nouns that take more than an s (`key is`, `keys are`)."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def encodable(text: str) -> str:
    """Return text that can be encoded: JSON may spell half a surrogate pair."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def did_you_mean(word: str, known: Iterable[str], *, most: int, otherwise: str) -> str:
    """Return a hint with at most `most` of `known` that are spelled similarly; `otherwise` if there are none."""
    from difflib import get_close_matches  # for an error only

    near = get_close_matches(word, list(known), n=most, cutoff=0.5)
    return f"Did you mean {', '.join(near)}?" if near else otherwise


def alike_first(wanted: str, names: Iterable[str]) -> list[str]:
    """Sort names by similarity to the wanted one, the most similar first."""
    from difflib import SequenceMatcher  # for an error only

    return sorted(names, key=lambda name: (-SequenceMatcher(None, wanted, name).ratio(), name))


def rfc3339(timestamp_ms: int | None) -> str | None:
    """Format a Kafka timestamp (ms since the epoch; negative or None means absent) as RFC 3339 UTC.

    Clients choose it, so it may lie beyond the year 9999: then the year is written as Java's `Instant` does, `+10000`.
    """
    if timestamp_ms is None or timestamp_ms < 0:
        return None
    seconds, within_ms = divmod(timestamp_ms, 1000)
    return f"{_second(seconds)}.{within_ms:03d}Z"


@functools.lru_cache(maxsize=4096)  # rows of a topic are often of the same seconds
def _second(seconds: int) -> str:
    timestamp_ms = 1000 * seconds
    later, within_ms = divmod(timestamp_ms, _CALENDAR_MS) if timestamp_ms >= YEAR_10000_MS else (0, timestamp_ms)
    moment = _EPOCH + timedelta(milliseconds=within_ms)
    text = moment.isoformat(timespec="seconds").removesuffix("+00:00")
    return f"+{moment.year + later * _CALENDAR_YEARS}{text[4:]}" if later else text


_LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}")
RULE = "letters, digits, dots, underscores and hyphens, at most 249 of them"


def is_topic_name(text: str) -> bool:
    """Return whether a topic can have that name."""
    return _LEGAL.fullmatch(text) is not None and text not in (".", "..")


@overload
def json_bytes(data: bytes) -> str | dict[str, str]: ...
@overload
def json_bytes(data: bytes | None) -> str | dict[str, str] | None: ...
def json_bytes(data: bytes | None) -> str | dict[str, str] | None:
    """Return `data` as text where it is valid UTF-8, else `{"base64": "…"}`; None stays None."""
    if data is None:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        import base64

        return {"base64": base64.b64encode(data).decode("ascii")}
