"""Warnings where transactional ids may be hidden: brokers list only those that one may DESCRIBE, and do not say so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eosctl.app import App
from eosctl.core.acls.lines import kafka_acls_line
from eosctl.report import Problem
from eosctl.txn import codes
from eosctl.txn.hanging import Reason


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
