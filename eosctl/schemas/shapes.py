"""Shapes that several kinds share."""

from __future__ import annotations

COUNTS = {"*": "int"}
PLACE = {"topic": "str", "partition": "int"}
