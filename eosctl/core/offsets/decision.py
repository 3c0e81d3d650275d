"""The words in which `eosctl.engine.rule` decides what becomes of a key, and how one is not as it was decided."""

from __future__ import annotations

from enum import StrEnum, unique


@unique
class Policy(StrEnum):
    """Who wins where source and target disagree (`--conflict`)."""

    KEEP_TARGET = "keep-target"
    TAKE_SOURCE = "take-source"
    NEWEST = "newest"
    FAIL = "fail"


@unique
class KeyAction(StrEnum):
    """What happens to a key of the target."""

    WRITE = "write"
    DELETE = "delete"
    KEEP = "keep"
    CONFLICT = "conflict"


@unique
class KeyMismatch(StrEnum):
    """How a key is not as it should be: no record, a deletion, a value where none should be, another value, or the
    value of a record that was there before the write."""

    MISSING = "missing"
    DELETED = "deleted"
    UNEXPECTED = "unexpected"
    DIFFERS = "differs"
    NOT_REWRITTEN = "not_rewritten"


def mismatch(expected: bytes | None, actual: bytes | None, *, found: bool) -> KeyMismatch:
    """How a key that should have `expected` is not as it should be.

    None is no value, `found` whether there is a record.
    """
    if not found:
        return KeyMismatch.MISSING
    if actual is None:
        return KeyMismatch.DELETED
    return KeyMismatch.UNEXPECTED if expected is None else KeyMismatch.DIFFERS
