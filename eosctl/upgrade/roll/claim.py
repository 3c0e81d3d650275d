"""The claim of a group by an upgrade, so that another operator's eosctl stops one under way.

It initializes a transactional id of eosctl's own, as a producer does; before each restart the producer must still be
the same. So of two upgrades of a group, begun on two machines, the older one stops before its next restart.
"""

from __future__ import annotations

from msgspec import Struct

from eosctl.app import App
from eosctl.core.ids import ProducerId, TransactionalId, own_transactional_id
from eosctl.core.transactions import OPEN_STATES, TransactionDescription
from eosctl.errors import EosctlError, RefusedError
from eosctl.events import Event
from eosctl.ports import TransactionAdmin

_TIMEOUT_MS = 60_000


class GroupClaim(Struct, frozen=True):
    """The id, and its producer id and epoch as this run initialized it; None without the right, or on failure."""

    transactional_id: TransactionalId
    producer: tuple[ProducerId, int] | None = None


def claim_group(app: App) -> GroupClaim:
    """Claim the group's own id; raise RefusedError while another eosctl writes with it. Skip it without the right."""
    wanted = own_transactional_id(app.target.require_group_id())
    try:
        with app.transactions() as admin:
            found = admin.describe_transactions([wanted]).get(wanted)
            if isinstance(found, TransactionDescription) and found.state in OPEN_STATES:
                raise RefusedError(
                    f"another eosctl writes to the config topic of group {app.target.group_id} now "
                    f"({wanted} is {found.state}); nothing was written",
                    hint="Wait for it, and run again.",
                )
            producer, reason = _take(admin, wanted)
    except RefusedError:
        raise
    except EosctlError as exc:
        producer, reason = None, exc.message
    if producer is None:
        app.on_event(Event(f"an upgrade that is begun elsewhere would not be noticed at once: {wanted}: {reason}"))
    return GroupClaim(wanted, producer)


def _take(admin: TransactionAdmin, wanted: TransactionalId) -> tuple[tuple[ProducerId, int] | None, str]:
    for answer in admin.fence([wanted], transaction_timeout_ms=_TIMEOUT_MS):
        if answer.producer_id is not None and answer.producer_epoch is not None:
            return (answer.producer_id, answer.producer_epoch), ""
        return None, answer.fault.name if answer.fault else "no answer"
    return None, "no answer"


def require_ours(app: App, claim: GroupClaim) -> None:
    """Raise RefusedError if another eosctl has claimed the id since; if it can't be read, go on."""
    if claim.producer is None:
        return
    try:
        with app.transactions() as admin:
            found = admin.describe_transactions([claim.transactional_id]).get(claim.transactional_id)
    except EosctlError:
        return
    if isinstance(found, TransactionDescription) and (found.producer_id, found.producer_epoch) != claim.producer:
        raise RefusedError(
            f"another eosctl began to work at group {app.target.group_id}: {claim.transactional_id} is not as this "
            "upgrade took it; no further worker was restarted",
            hint="See who else upgrades, rescues or writes task counts here; --resume continues when that is over.",
        )
