"""Incidents of workers: killed, hung."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from eosctl.sandbox.servers import process
from eosctl.sandbox.servers.process import Node
from tests.gameday.ground import Ground
from tests.gameday.incident import Incident, Named, play

pytestmark = pytest.mark.live


def last_worker(ground: Ground) -> Node:
    [node] = [node for node in ground.stack.state.of_kind("worker") if node.address == ground.urls[-1]]
    return node


def sent(number: signal.Signals) -> Callable[[Ground], None]:
    return lambda ground: process.signal_group(last_worker(ground).process, number)


def start(ground: Ground) -> None:
    ground.stack.start_node(last_worker(ground).name)


@contextmanager
def killed(ground: Ground, name: str) -> Iterator[None]:
    """Its part of a connector moves to the other worker, and nothing else stands beside it."""
    with ground.source(name) as source:
        sent(signal.SIGKILL)(ground)
        try:
            yield
        finally:
            if not last_worker(ground).process.alive():
                start(ground)
        source.append("two")
        source.wait_position(8)


@contextmanager
def hung(ground: Ground, _name: str) -> Iterator[None]:
    sent(signal.SIGSTOP)(ground)
    try:
        yield
    finally:
        sent(signal.SIGCONT)(ground)


UNREACHABLE = Named("worker_unreachable", "{worker}", follows=("members_known", "modes_proven"))
INCIDENTS = (
    Incident("a worker was killed", killed, (UNREACHABLE,), by_hand=start),
    Incident("a worker hangs", hung, (UNREACHABLE,), by_hand=sent(signal.SIGCONT)),
)


@pytest.mark.parametrize("incident", INCIDENTS, ids=str)
def test_it_is_named_and_the_printed_remedy_heals(incident: Incident, ground: Ground, unique: str) -> None:
    play(incident, ground, unique)
