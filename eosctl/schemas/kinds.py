"""Kinds that are written by hand: none any more."""

from __future__ import annotations

from eosctl.schemas.notation import Kind

KINDS: dict[str, Kind] = {}
