"""Codes of failures that only sources of the collector have."""

from __future__ import annotations

from eosctl.codes import error

STALE = error(
    "stale",
    "The last look at a source ended too long ago to say how it is now, and no other is under way.",
    "See the exporter's log, and whether its machine was suspended; restart it.",
)
TOO_LARGE = error(
    "too_large",
    "A topic is too large to be read as a whole by something that looks at it again and again.",
    "Run `eosctl offsets lint` and `eosctl doctor` by themselves now and then.",
)
