"""Warnings where transactional ids may be hidden: brokers list only those that one may DESCRIBE, and do not say so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eosctl.app import App
from eosctl.core.acls.lines import kafka_acls_line
from eosctl.core.ids import TransactionalId
from eosctl.core.transactions import KafkaFault
from eosctl.ports import TransactionAdmin
from eosctl.report import Problem
from eosctl.txn import codes
from eosctl.txn.hanging import Reason, is_forgotten

NOBODYS_ID = TransactionalId("~nobody-has-this-id~")
"""Who may DESCRIBE this one may do so because of a right to all ids: no sensible prefix covers it."""


def unseen_ids_warning(reasons: Iterable[str | None]) -> list[Problem]:
    """What a missing owner may also mean: brokers list only ids that one may DESCRIBE, and do not say so."""
    if Reason.NO_TRANSACTIONAL_ID not in reasons:
        return []
    return [
        Problem(
            codes.IDS_MAY_BE_HIDDEN,
            "no listed id uses this producer id; an id that this principal may not DESCRIBE is not listed either",
            hint="Be sure that the principal may DESCRIBE every TransactionalId before you abort anything.",
            severity="warning",
        )
    ]


def why_ids_are_hidden(admin: TransactionAdmin) -> KafkaFault | None:
    """Why some ids may be missing in a listing; None for a principal that may DESCRIBE any (`DENY` of one aside).

    Brokers check the right before they look for the id (`KafkaApis.handleDescribeTransactionsRequest`, 3.0 to 4.4).
    """
    answer = admin.describe_transactions([NOBODYS_ID])[NOBODYS_ID]
    return answer if isinstance(answer, KafkaFault) and not is_forgotten(answer) else None


def hidden_ids_warning(app: App, found: Sequence[object]) -> list[Problem]:
    """Nothing found where clients have names: it may be that there is nothing, or that it is not shown."""
    client = app.target.client
    if found or client is None or client.security_protocol == "PLAINTEXT":
        return []
    user = client.sasl_username or "this principal"
    line = kafka_acls_line(["DESCRIBE"], "TransactionalId", "*", settings=client)
    return [
        Problem(
            codes.IDS_MAY_BE_HIDDEN,
            f"ids may be hidden: brokers list only those that {user} may DESCRIBE, and do not say so",
            hint=f"To let it see all of them:\n{line}",
            severity="warning",
        )
    ]
