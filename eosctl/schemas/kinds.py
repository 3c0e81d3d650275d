"""What the documents look like, kind by kind; `notation` says how to read it.

A new kind is a line in KINDS. Fields may be added to a kind, never renamed or removed.
"""

from __future__ import annotations

from eosctl.schemas.notation import Kind
from eosctl.schemas.offset_kinds import OFFSET_KINDS

KINDS: dict[str, Kind] = {
    **OFFSET_KINDS,
}
