"""One question to every broker, asked side by side, so that those that do not answer all cost the same wait."""

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
    """Return by broker id what `ask` got from each, or why it got nothing by `deadline`."""
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
