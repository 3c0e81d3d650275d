"""The codes of the warnings of a rescue."""

from __future__ import annotations

from eosctl.codes import error, warning

RESCUE_AGAIN = error(
    "rescue_again", "A step of the rescue failed; those after it were not done.", "Run the same command again."
)
RESCUE_UNFINISHED = warning("rescue_unfinished", "An earlier rescue was cut off; this one goes on from there.")
