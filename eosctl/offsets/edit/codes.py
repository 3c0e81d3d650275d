"""The codes of warnings of `offsets set` and `offsets reset`."""

from __future__ import annotations

from eosctl.codes import warning

GOES_FORWARD = warning(
    "goes_forward",
    "An offset is set further on: what the source has in between is not read.",
    "Leave it, unless those records are not wanted.",
)
SOURCE_KEEPS = warning(
    "source_keeps",
    "The source of a well-known connector delivers only what it still has, whatever the offset says.",
    "Look there whether it still has the records; Debezium's signal table asks for rows again.",
)
NEW_KEY = warning(
    "new_key",
    "No record has this source partition: its key had to be made up.",
    "Be sure that the connector spells it the same.",
)
SEVERAL_SPELLINGS = warning(
    "several_spellings", "A source partition has keys in several spellings; all that have a value are written."
)
