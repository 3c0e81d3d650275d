"""Sends a request about many keys to the broker of each: an error of one broker hides no result of the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import TypeVar

from eosctl.core.transactions import KafkaFault
from eosctl.errors import EosctlError, UnsupportedError
from eosctl.kafka.cluster import Cluster
from eosctl.kafka.faults import fault, fault_of
from eosctl.kafka.topics.stream import Address
from eosctl.wire.error_codes import INVALID_REQUEST

K = TypeVar("K")
V = TypeVar("V")
BATCH = 1000


def ask_each_broker(
    cluster: Cluster,
    located: Mapping[K, Address | KafkaFault],
    ask: Callable[[Address, list[K]], Mapping[K, V | KafkaFault]],
) -> dict[K, V | KafkaFault]:
    """Send each broker a request for its keys, in batches.

    An error of one batch is a fault of its keys, not of the others. Raises UnsupportedError: a broker too old for the
    request is no problem of single keys.
    """
    answers: dict[K, V | KafkaFault] = {}
    by_broker: defaultdict[Address, list[K]] = defaultdict(list)
    for key, where in located.items():
        if isinstance(where, KafkaFault):
            answers[key] = where
        else:
            by_broker[where].append(key)
    for address, keys in by_broker.items():
        with cluster.one_of(len(by_broker)):
            for start in range(0, len(keys), BATCH):
                batch = keys[start : start + BATCH]
                answers.update(dict.fromkeys(batch, fault(INVALID_REQUEST, f"{address} left this out of its answer")))
                try:
                    answers.update(ask(address, batch))
                except UnsupportedError:
                    raise
                except EosctlError as exc:
                    answers.update(dict.fromkeys(batch, fault_of(exc)))
    return answers
