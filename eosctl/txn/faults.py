"""Converts refusals and missing answers of brokers to rows, counts and exit codes."""

from __future__ import annotations

from collections.abc import Iterable

from eosctl.core.transactions import KafkaFault
from eosctl.errors import ExitCode
from eosctl.output.parts import KafkaError

# TOPIC_, GROUP_, CLUSTER_, TRANSACTIONAL_ID_AUTHORIZATION_FAILED and SASL_AUTHENTICATION_FAILED
AUTHORIZATION_CODES = frozenset({29, 30, 31, 53, 58})
# no answer: no leader, timed out, connection lost, coordinator loading, unknown or moving, transaction still ending
UNREACHABLE_CODES = frozenset({5, 6, 7, 13, 14, 15, 16, 51})
LOST_ANSWER_CODES = frozenset({7, 13})  # timed out, connection lost: the request may have been done all the same
NOT_CHECKED, NO_ANSWER = "not_checked", 7


def error_cell(fault: KafkaFault) -> KafkaError:
    """Return the `error` member of a row."""
    return KafkaError(code=fault.name, kafka_code=fault.code, message=fault.message or fault.name)


def exit_code_of_faults(faults: Iterable[KafkaFault | None]) -> ExitCode:
    """Return the exit code if everything failed: not authorised, unreachable, or unclassified if causes differ."""
    codes = {fault.code if fault is not None else 0 for fault in faults}
    if codes <= AUTHORIZATION_CODES:
        return ExitCode.UNAUTHORIZED
    return ExitCode.UNREACHABLE if codes <= UNREACHABLE_CODES else ExitCode.FAILED
