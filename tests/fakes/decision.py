"""What becomes of one key, as it was specified: the rule of merge and migrate that `eosctl.engine.rule` is held to.

Values are compared as bytes; a deletion is a fact like any other, and no bytes or JSON null are deletions too, for
Connect reads them so.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from eosctl.core.offsets.records import is_nothing
from eosctl.core.offsets.views import KeyAction, Policy


class Cell(NamedTuple):
    """What a store has for a key: bytes, or a tombstone (None)."""

    value: bytes | None
    timestamp_ms: int

    def meaning(self) -> bytes | None:
        """The bytes that count; None for everything that Connect reads as no offset."""
        return None if is_nothing(self.value) else self.value


class Decision(NamedTuple):
    """An action, its reason in one word, and whether source and target disagreed."""

    action: KeyAction
    reason: str
    conflict: bool = False


def decide(source: Cell | None, target: Cell | None, policy: Policy, *, fallback: bool = False) -> Decision:
    """What to do with a key that the source or the target has, or both.

    A target without a record takes a live value and needs no tombstone; a difference is a conflict, a deletion against
    a value too, for which `newest` keeps the target unless the source's timestamp is later. What `delete` sends is a
    tombstone, however the source spelled its deletion. With `fallback` a deletion is no fact but nothing, so that a
    value on either side stands: the view that KIP-618 documents of a connector's two stores.
    """
    if source is None:
        return Decision(KeyAction.KEEP, "only_in_target")
    wanted = source.meaning()
    if target is None:
        if wanted is None:
            return Decision(KeyAction.KEEP, "nothing_to_delete")
        return Decision(KeyAction.WRITE, "missing")
    if wanted == target.meaning():
        return Decision(KeyAction.KEEP, "equal")
    if fallback and wanted is None:
        return Decision(KeyAction.KEEP, "deleted_in_source", conflict=True)
    if fallback and target.meaning() is None:
        return Decision(KeyAction.WRITE, "deleted_in_target", conflict=True)
    if policy is Policy.FAIL:
        return Decision(KeyAction.CONFLICT, "undecided", conflict=True)
    newer = source.timestamp_ms > target.timestamp_ms
    if policy is Policy.KEEP_TARGET or (policy is Policy.NEWEST and not newer):
        return Decision(KeyAction.KEEP, "conflict_kept", conflict=True)
    action = KeyAction.DELETE if wanted is None else KeyAction.WRITE
    return Decision(action, "source_taken", conflict=True)


class KeyClaim(Struct, frozen=True):
    """A source record that ends on some target key; `precedence` counts from 0, the strongest source."""

    cell: Cell
    renamed: bool
    precedence: int
    connector: str


def strongest(claims: list[KeyClaim], policy: Policy) -> KeyClaim:
    """The claim that counts where several source records end on one target key.

    A record that already has the final name stands for what is there, a renamed one for what comes: so `keep-target`
    and `fail` prefer the first, `take-source` the second; `newest` the later timestamp. Then the stronger source.
    """
    return min(claims, key=lambda claim: (*_rank(claim, policy), claim.precedence, -claim.cell.timestamp_ms))


def _rank(claim: KeyClaim, policy: Policy) -> tuple[int, ...]:
    if policy is Policy.NEWEST:
        return (-claim.cell.timestamp_ms, int(claim.renamed))
    return (int(claim.renamed is not (policy is Policy.TAKE_SOURCE)),)


def collide(claims: list[KeyClaim]) -> bool:
    """Whether a rename brought two different values onto one key, which is a conflict whatever the target has."""
    return len({claim.renamed for claim in claims}) > 1 and len({claim.cell.meaning() for claim in claims}) > 1


def decide_claims(claims: list[KeyClaim], target: Cell | None, policy: Policy) -> tuple[KeyClaim, Decision]:
    """The claim that counts, and what to do with the key; a collision is undecided under `fail`."""
    winner = strongest(claims, policy)
    if not collide(claims):
        return winner, decide(winner.cell, target, policy)
    if policy is Policy.FAIL:
        return winner, Decision(KeyAction.CONFLICT, "rename_collides", conflict=True)
    decision = decide(winner.cell, target, policy)
    return winner, Decision(decision.action, decision.reason, conflict=True)
