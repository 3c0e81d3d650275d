"""Codes about the metrics of source tasks."""

from __future__ import annotations

from eosctl.codes import finding

NO_TRANSACTION_SIZES = finding(
    "no_transaction_sizes",
    "A source task has metrics, but no transaction sizes: it is not exactly-once, or the exporter leaves them out.",
    "`eosctl workers probe`; then look at the exporter's rules.",
)
TRANSACTION_NEAR_TIMEOUT = finding(
    "transaction_near_timeout",
    "A task's open transaction is close to its timeout, at which brokers abort it and the task fails.",
    "Commit more often (transaction.boundary), or raise producer.override.transaction.timeout.ms.",
)
TRANSACTION_MAY_NEAR_TIMEOUT = finding(
    "transaction_may_near_timeout",
    "By size and rate, a task's largest transaction may have come close to its timeout; pauses count in.",
    "Look again under load; -b and -g add what the coordinators know.",
)
BOUNDARY_TOO_WIDE = finding(
    "boundary_too_wide",
    "A task puts very many records into one transaction (--wide): read_committed consumers wait for all of it.",
    "transaction.boundary=poll, or a shorter transaction.boundary.interval.ms.",
)
