"""Whether a URL that no member advertises leads to the group, by the connectors that answer there."""

from __future__ import annotations

import pytest

from eosctl.core.worker_ways import Way, judge_way

MEMBERS = {"w0:8083", "w1:8083"}


@pytest.mark.parametrize(
    ("theirs", "ours", "way"),
    [
        ({"c": ["w9:8083"]}, {"c"}, Way.IN),
        ({"c": ["w1:8083"]}, None, Way.IN),
        ({"c": ["w1:8083"], "new": []}, {"c"}, Way.IN),
        ({"c": ["w9:8083"]}, None, Way.UNKNOWN),
        ({}, set(), Way.UNKNOWN),
        ({}, None, Way.UNKNOWN),
        ({}, {"c"}, Way.ELSEWHERE),
        ({"x": ["w0:8083"]}, {"c"}, Way.ELSEWHERE),  # another group whose workers have the same names
        ({"x": ["w9:8083"], "c": ["w9:8083"]}, {"c"}, Way.ELSEWHERE),
    ],
)
def test_where_a_url_leads(theirs: dict[str, list[str]], ours: set[str] | None, way: Way) -> None:
    judged, said = judge_way(theirs, ours=ours, members=MEMBERS)
    assert judged is way
    assert said
