"""Whether a URL that no member advertises leads to the group, by the connectors that answer there."""

from __future__ import annotations

import pytest

from eosctl.group.members import ConnectMember
from eosctl.group.ways import Way, judge_way, told_apart

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


def test_a_name_is_of_the_one_member_whose_address_it_has() -> None:
    """The name of all pods (a headless Service) is none of theirs."""
    members = [ConnectMember(f"m{n}", "connect", f"/10.0.0.{n}", leader=False, url="http://all:8083") for n in (1, 2)]
    given = ["http://pod-1:8083", "http://all-pods:8083", "http://nobody:8083"]
    addresses = {"pod-1": {"10.0.0.1", "fe80::1"}, "all-pods": {"10.0.0.1", "10.0.0.2"}, "nobody": set[str]()}
    assert told_apart(members, {"m1", "m2"}, given, addresses) == {"m1": "http://pod-1:8083"}
    both = {**addresses, "nobody": {"10.0.0.1"}}
    assert told_apart(members, {"m1", "m2"}, given, both) == {}, "two names of one address"
