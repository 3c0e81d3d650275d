"""Whether a URL that no member advertises leads to the group, by the connectors that answer there."""

from __future__ import annotations

import pytest

from eosctl.group.addresses import Destination, classify_url, urls_by_address
from eosctl.group.members import ConnectMember

MEMBERS = {"w0:8083", "w1:8083"}


@pytest.mark.parametrize(
    ("theirs", "ours", "destination"),
    [
        ({"c": ["w9:8083"]}, {"c"}, Destination.IN),
        ({"c": ["w1:8083"]}, None, Destination.IN),
        ({"c": ["w1:8083"], "new": []}, {"c"}, Destination.IN),
        ({"c": ["w9:8083"]}, None, Destination.UNKNOWN),
        ({}, set(), Destination.UNKNOWN),
        ({}, None, Destination.UNKNOWN),
        ({}, {"c"}, Destination.ELSEWHERE),
        ({"x": ["w0:8083"]}, {"c"}, Destination.ELSEWHERE),  # another group whose workers have the same names
        ({"x": ["w9:8083"], "c": ["w9:8083"]}, {"c"}, Destination.ELSEWHERE),
    ],
)
def test_where_a_url_leads(theirs: dict[str, list[str]], ours: set[str] | None, destination: Destination) -> None:
    judged, said = classify_url(theirs, ours=ours, members=MEMBERS)
    assert judged is destination
    assert said


def test_a_name_is_of_the_one_member_whose_address_it_has() -> None:
    """The name of all pods (a headless Service) is none of theirs."""
    members = [ConnectMember(f"m{n}", "connect", f"/10.0.0.{n}", leader=False, url="http://all:8083") for n in (1, 2)]
    given = ["http://pod-1:8083", "http://all-pods:8083", "http://nobody:8083"]
    addresses = {"pod-1": {"10.0.0.1", "fe80::1"}, "all-pods": {"10.0.0.1", "10.0.0.2"}, "nobody": set[str]()}
    assert urls_by_address(members, {"m1", "m2"}, given, addresses) == {"m1": "http://pod-1:8083"}
    both = {**addresses, "nobody": {"10.0.0.1"}}
    assert urls_by_address(members, {"m1", "m2"}, given, both) == {}, "two names of one address"
