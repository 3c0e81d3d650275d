"""What of the collector's facts is a line, and what leaves a doubt."""

from __future__ import annotations

import pytest

from eosctl.collect.facts import DoctorFacts
from eosctl.collect.overview import Collected, Overview
from eosctl.watch.gather import DOCTOR, looks_of
from eosctl.watch.rules import Watched, watched

NOW_MS = 60_000


def state_of(facts: DoctorFacts) -> str:
    overview = Overview(NOW_MS, 0, 1, {DOCTOR: Collected(DOCTOR, 15.0, 60.0, facts=facts, facts_ms=NOW_MS, looks=1)})
    looks = looks_of(overview, servers=["b:9092"], connector=None, ignore=())
    return watched(Watched(), looks, NOW_MS / 1000, strict=False).state


@pytest.mark.parametrize(
    ("not_checked", "state"),
    [({}, "calm"), ({"connectors": "unauthorized"}, "unknown"), ({"offsets": "too_large"}, "calm")],
)
def test_a_check_that_could_not_run_is_no_calm(not_checked: dict[str, str], state: str) -> None:
    """A script would go on after a repair that nobody has seen; doctor itself ends with 7 then."""
    assert state_of(DoctorFacts((), not_checked)) == state
