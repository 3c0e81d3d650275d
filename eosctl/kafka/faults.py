"""Errors of single items: which are retried, where, and how soon.

Decisions are Java's (`FenceProducersHandler`, `CoordinatorStrategy`, `PartitionLeaderStrategy`, Kafka 4.3); the waits
are not: Java's begin at 100 ms and apply after successes too, which limits it to one id per second and broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from eosctl.core.transactions import KafkaFault
from eosctl.deadline import Deadline
from eosctl.errors import DeadlineError, EosctlError, UnauthorizedError, UnreachableError, UnsupportedError
from eosctl.wire.error_codes import (
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    FENCED_LEADER_EPOCH,
    KAFKA_STORAGE_ERROR,
    LEADER_NOT_AVAILABLE,
    NETWORK_EXCEPTION,
    NOT_COORDINATOR,
    NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
    SASL_AUTHENTICATION_FAILED,
    UNKNOWN_SERVER_ERROR,
    UNSUPPORTED_VERSION,
    error_name,
)

K = TypeVar("K")
V = TypeVar("V")

SAME_BROKER = frozenset({COORDINATOR_LOAD_IN_PROGRESS, CONCURRENT_TRANSACTIONS})
NEW_COORDINATOR = frozenset({COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, NETWORK_EXCEPTION, REQUEST_TIMED_OUT})
COORDINATOR_RETRIES = SAME_BROKER | NEW_COORDINATOR
LEADER_RETRIES = frozenset(
    {
        *(LEADER_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, KAFKA_STORAGE_ERROR),
        *(NETWORK_EXCEPTION, REQUEST_TIMED_OUT),
    }
)
WITHOUT_LEADER = frozenset({COORDINATOR_NOT_AVAILABLE, LEADER_NOT_AVAILABLE})
LEADER_PATIENCE_S = 15.0  # a leader is elected within the brokers' session timeout (9 s, or 18 s with ZooKeeper)
_FIRST_WAIT_S, _GROWTH, _LONGEST_WAIT_S = 0.02, 1.5, 1.0


def fault(code: int, message: str | None = None) -> KafkaFault:
    """Return the fault for an error code."""
    return KafkaFault(code, error_name(code), message or "")


def fault_of(error: EosctlError) -> KafkaFault:
    """Return the fault of an item whose request could not be made, or got no response."""
    if isinstance(error, DeadlineError):
        return fault(REQUEST_TIMED_OUT, error.message)
    if isinstance(error, UnreachableError):
        return fault(NETWORK_EXCEPTION, error.message)
    if isinstance(error, UnauthorizedError):
        return fault(SASL_AUTHENTICATION_FAILED, error.message)
    if isinstance(error, UnsupportedError):
        return fault(UNSUPPORTED_VERSION, error.message)
    return fault(UNKNOWN_SERVER_ERROR, error.message)


def wait_s(retry: int) -> float:
    """Return the seconds before retry number `retry` (from 0): 20 ms growing by half to 1 s, give or take a fifth."""
    steps = min(retry, 16)  # beyond, the longest wait is reached anyway
    import random  # which brings hashes with it; most commands wait for nothing

    return min(_LONGEST_WAIT_S, _FIRST_WAIT_S * _GROWTH**steps) * random.uniform(0.8, 1.2)  # noqa: S311 - no secret


def ask_until_settled(
    keys: Iterable[K],
    ask: Callable[[list[K]], Mapping[K, V | KafkaFault]],
    *,
    retriable: frozenset[int],
    deadline: Deadline,
    within: Callable[[Deadline], AbstractContextManager[object]] = nullcontext,
) -> dict[K, V | KafkaFault]:
    """Call `ask` for all keys, then again for those whose fault is retriable; in the end these keep their last fault.

    The end is the deadline, but half of the remaining time once some keys are settled, and less where only leaders are
    missing: the rest of the time is for the work with the results. Each request is made `within` that. An error that
    `ask` raises ends the call if nothing is known yet; later it becomes the fault of the open keys.
    """
    answers: dict[K, V | KafkaFault] = {}
    pending, retry, patience, election = list(dict.fromkeys(keys)), 0, deadline, deadline
    count = len(pending)
    while pending:
        try:
            with within(patience):
                fresh = ask(pending)
                # one that timed out and is not asked again may have been done
                answers.update(with_reasons(fresh, answers, patience) if REQUEST_TIMED_OUT in retriable else fresh)
        except (UnreachableError, DeadlineError) as exc:
            if not answers:
                raise
            if not isinstance(exc, DeadlineError):  # which says less than the earlier fault
                answers.update(dict.fromkeys(pending, fault_of(exc)))
        pending = [key for key in pending if _code(answers[key]) in retriable]
        if patience is deadline and len(pending) < count:
            patience, election = deadline.half(), deadline.half(at_most_s=LEADER_PATIENCE_S)
        until = election if all(_code(answers[key]) in WITHOUT_LEADER for key in pending) else patience
        if not pending or until.expired():
            break
        until.sleep(wait_s(retry))
        retry += 1
    return answers


def with_reasons(
    fresh: Mapping[K, V | KafkaFault], before: Mapping[K, V | KafkaFault], deadline: Deadline
) -> Mapping[K, V | KafkaFault]:
    """Return the `fresh` answers; where the time is over, one that timed out says less than the fault `before`."""
    if not deadline.expired():
        return fresh
    earlier = {key: answer for key, answer in before.items() if isinstance(answer, KafkaFault)}
    return {
        key: earlier.get(key, answer) if _code(answer) == REQUEST_TIMED_OUT else answer for key, answer in fresh.items()
    }


def _code(answer: object) -> int | None:
    return answer.code if isinstance(answer, KafkaFault) else None
