"""What of the collector's facts is a line, and what leaves a doubt."""

from __future__ import annotations

from pathlib import Path

import pytest

from eosctl.collect.collector import Collector
from eosctl.collect.facts import DoctorFacts, GroupFacts, HangingFacts, KafkaFacts
from eosctl.collect.overview import Collected, Overview
from eosctl.errors import UnauthorizedError
from eosctl.watch.rules import WatchState, next_state
from eosctl.watch.run import DOCTOR, looks_of, watched_sources
from tests.collect.scene import app_of, group

NOW_MS = 60_000


def state_of(facts: object, source: str = DOCTOR) -> str:
    overview = Overview(NOW_MS, 0, 1, {source: Collected(source, 15.0, 60.0, facts=facts, facts_ms=NOW_MS, looks=1)})
    looks = looks_of(overview, servers=["b:9092"], connector=None, ignore=())
    return next_state(WatchState(), looks, NOW_MS / 1000, strict=False).state


@pytest.mark.parametrize(
    ("not_checked", "state"),
    [({}, "calm"), ({"connectors": "unauthorized"}, "unknown"), ({"offsets": "too_large"}, "calm")],
)
def test_a_check_that_could_not_run_is_no_calm(not_checked: dict[str, str], state: str) -> None:
    """A script would go on after a repair that nobody has seen; doctor itself ends with 7 then."""
    assert state_of(DoctorFacts((), not_checked)) == state


@pytest.mark.parametrize(
    ("source", "facts", "state"),
    [
        ("kafka", KafkaFacts("k"), "calm"),
        ("kafka", KafkaFacts("k", silent=(2,)), "unknown"),
        ("hanging", HangingFacts((), partitions=3), "calm"),
        ("hanging", HangingFacts((), partitions=3, unasked=1), "unknown"),
        ("group", GroupFacts("g", "Stable", ()), "calm"),
        ("group", GroupFacts("g", "Stable", (), unseen={"topics": "not allowed"}), "unknown"),
    ],
)
def test_a_part_of_a_source_that_was_not_seen_is_no_calm(source: str, facts: object, state: str) -> None:
    """Only doctor's checks counted."""
    assert state_of(facts, source) == state


def test_doctor_of_a_group_that_can_not_be_asked_is_no_calm(tmp_path: Path) -> None:
    world = group()
    world.brokers.calls.fail_always("describe_transactions", UnauthorizedError("not allowed"))
    collector = Collector(app_of(world, tmp_path), watched_sources(()), interval_s=15.0)
    for source in collector.sources:
        collector.look(source)
    overview = collector.overview()
    looks = looks_of(overview, servers=["b:9092"], connector=None, ignore=())
    assert next_state(WatchState(), looks, overview.taken_ms / 1000, strict=False).state == "unknown"
