"""Names of a MirrorMaker's nodes: stable over restarts, and by count where nothing tells them apart."""

from __future__ import annotations

import pytest

from eosctl.group.members import KnownNodes, NodeMember, NodeName, is_flow, name_nodes


def member(member_id: str, host: str = "h", client_id: str = "a->b") -> NodeMember:
    return NodeMember(member_id, host, client_id)


@pytest.mark.parametrize("name", ["h", "h#2", "h/c", "h/c#3", "2001:db8::1", "2001:db8::1#2"])
def test_a_name_is_read_as_it_is_written(name: str) -> None:
    assert str(NodeName.read(name)) == name


@pytest.mark.parametrize(("client_id", "told"), [("a->b", True), ("connect", False), ("->b", False), ("a->", False)])
def test_the_client_id_of_a_flow(client_id: str, told: bool) -> None:
    assert is_flow(client_id) is told


def test_nodes_are_called_after_their_hosts_and_client_ids_and_counted() -> None:
    there = [member("3"), member("1", "g"), member("2"), member("4", "h", "own")]
    assert name_nodes(there, {}) == {"1": "g", "2": "h", "3": "h#2", "4": "h/own"}


def test_who_is_known_keeps_the_name_and_a_new_member_takes_what_is_free() -> None:
    assert name_nodes([member("9"), member("3")], {"h": "2", "h#2": "3"}) == {"9": "h", "3": "h#2"}
    assert name_nodes([member("1"), member("9")], {"h": "2", "h#2": "1"}) == {"1": "h#2", "9": "h"}


@pytest.mark.parametrize(
    ("there", "alike", "now"),
    [
        ("13", "h#2 h", {"h": "2", "h#2": "1"}),  # the other one went: that was the one
        ("23", "h#2 h", {"h": "1", "h#2": "2"}),  # it went itself
        ("12", "h#2 h", {"h": "1", "h#2": "2"}),  # nobody went yet
        ("13", "h", {"h": "1", "h#2": "2"}),  # the other one is known for sure: somebody else restarted it
        ("13", "h#2", {"h": "1", "h#2": "2"}),
    ],
)
def test_the_one_that_went_is_the_one_that_was_restarted(there: str, alike: str, now: dict[str, str]) -> None:
    known = KnownNodes({"h": "1", "h#2": "2"}, ("h",), frozenset(alike.split()))
    assert known.now(set(there)) == now


def test_nodes_of_different_places_are_never_taken_for_each_other() -> None:
    known = KnownNodes({"h": "1", "g": "2", "http://h:1": "4"}, ("h",), frozenset({"h", "g", "http://h:1"}))
    assert known.now({"1", "3"}) == known.members
