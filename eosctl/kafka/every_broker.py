"""Sends one request to every broker concurrently, so that all brokers that do not respond cost one wait together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from eosctl.deadline import Deadline
from eosctl.errors import EosctlError
from eosctl.kafka.cluster import Cluster
from eosctl.kafka.topics.stream import Address

T = TypeVar("T")
_PARALLEL_BROKERS = 32


def ask_every_broker(
    cluster: Cluster, brokers: Mapping[int, Address], ask: Callable[[Address], T], *, deadline: Deadline
) -> dict[int, T | EosctlError]:
    """Return the result of `ask` for each broker, or the error that prevented it by `deadline`, by broker id."""
    from concurrent.futures import ThreadPoolExecutor

    def ask_within(address: Address) -> T | EosctlError:
        try:
            with cluster.within(deadline):
                return ask(address)
        except EosctlError as exc:
            return exc

    with ThreadPoolExecutor(_PARALLEL_BROKERS) as pool:
        try:
            return dict(zip(brokers, pool.map(ask_within, brokers.values()), strict=True))
        except BaseException:
            cluster.abort()  # wakes those that wait
            raise
