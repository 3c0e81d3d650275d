"""The words in which `eosctl.engine.rule` states the decision about a key and its differences from that decision."""

from __future__ import annotations

from enum import StrEnum, unique


@unique
class Policy(StrEnum):
    """The side that wins where source and target disagree (`--conflict`)."""

    KEEP_TARGET = "keep-target"
    TAKE_SOURCE = "take-source"
    NEWEST = "newest"
    FAIL = "fail"


@unique
class KeyAction(StrEnum):
    """The planned change to a key of the target."""

    WRITE = "write"
    DELETE = "delete"
    KEEP = "keep"
    CONFLICT = "conflict"


@unique
class KeyMismatch(StrEnum):
    """The difference between a key and its expected state.

    No record, a deletion, a value where none is expected, another value, or the value of a record that was there before
    the write.
    """

    MISSING = "missing"
    DELETED = "deleted"
    UNEXPECTED = "unexpected"
    DIFFERS = "differs"
    NOT_REWRITTEN = "not_rewritten"


def mismatch(expected: bytes | None, actual: bytes | None, *, found: bool) -> KeyMismatch:
    """Classify the difference between a key and its `expected` value.

    None is no value; `found` is whether there is a record.
    """
    if not found:
        return KeyMismatch.MISSING
    if actual is None:
        return KeyMismatch.DELETED
    return KeyMismatch.UNEXPECTED if expected is None else KeyMismatch.DIFFERS
