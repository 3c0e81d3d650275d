"""Group bytes: golden vectors of Kafka's own serialisers, what may be missing, what may not."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.transactions import RawGroup, RawGroupMember
from eosctl.errors import NotFoundError, ProtocolError
from eosctl.group.members import connect_group
from eosctl.group.protocol import (
    Assignment,
    Metadata,
    decode_assignment,
    decode_metadata,
    encode_assignment,
    encode_metadata,
    held_work,
    owned_work,
)

URL = "http://w1:8083/"
WORK = (("c1", -1), ("c1", 0), ("c1", 1))
_URL_HEX = "000f687474703a2f2f77313a383038332f"
_BODY = "0000" + "00086c65616465722d31" + _URL_HEX + "000000000000002a"
_ASSIGNED = "000000010002633100000003ffffffff0000000000000001"
# written by ConnectProtocol and IncrementalCooperativeConnectProtocol of Kafka 4.2
ASSIGNMENTS = {
    0: "0000" + _BODY + _ASSIGNED,
    1: "0001" + _BODY + _ASSIGNED + "00000000" + "00000000",
    2: "0002" + _BODY + _ASSIGNED + "00000000" + "00000000",
}
_CONFIG_STATE = _URL_HEX + "000000000000002a"


def _assignment(version: int = 2, assigned: tuple[tuple[str, int], ...] = WORK, **more: object) -> Assignment:
    return Assignment(version, 0, "leader-1", URL, 42, assigned, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_golden_assignments(version: int) -> None:
    data = bytes.fromhex(ASSIGNMENTS[version])
    assert decode_assignment(data) == _assignment(version)
    assert encode_assignment(_assignment(version)) == data


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0000" + _CONFIG_STATE, Metadata(0, URL, 42)),
        ("0002" + _CONFIG_STATE + "ffffffff", Metadata(2, URL, 42)),
        ("0002" + _CONFIG_STATE + "00000047" + ASSIGNMENTS[2], Metadata(2, URL, 42, _assignment())),
        ("0001" + _CONFIG_STATE + "00000047" + ASSIGNMENTS[1], Metadata(1, URL, 42, _assignment(1))),
    ],
)
def test_golden_metadata(text: str, expected: Metadata) -> None:
    assert decode_metadata(bytes.fromhex(text)) == expected
    assert encode_metadata(expected) == bytes.fromhex(text)


@pytest.mark.parametrize(
    ("text", "assigned"),
    [
        ("0002" + _BODY, ()),
        ("0002" + _BODY + "ffffffff" + "ffffffff" + "00000000", ()),
        ("0002" + _BODY + _ASSIGNED, WORK),
        ("0001" + _BODY + _ASSIGNED + "ffffffff", WORK),
    ],
)
def test_trailing_fields_of_an_assignment_may_be_missing_or_null(text: str, assigned: object) -> None:
    found = decode_assignment(bytes.fromhex(text))
    assert (found.assigned, found.revoked, found.scheduled_delay_ms) == (assigned, (), 0)


def test_metadata_without_its_last_field_has_no_current_assignment() -> None:
    assert decode_metadata(bytes.fromhex("0002" + _CONFIG_STATE)).current is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "2 bytes are wanted"),
        ("0003" + _CONFIG_STATE, "version 3"),
        ("ffff" + _CONFIG_STATE, "version -1"),
        ("0000" + _CONFIG_STATE + "00", "1 bytes are left over"),
        ("0002" + _CONFIG_STATE + "fffffffe", "-2 bytes are wanted"),
        ("0002" + _CONFIG_STATE + "00000048" + ASSIGNMENTS[2], "72 bytes are wanted"),
        ("0002" + _CONFIG_STATE + "00000000", "2 bytes are wanted"),
        ("0000" + "ffff" + "000000000000002a", "-1 bytes are wanted"),
        ("0000" + "0001ff" + "000000000000002a", "not UTF-8"),
    ],
)
def test_broken_metadata_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        decode_metadata(bytes.fromhex(text))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0000" + _BODY, "4 bytes are wanted"),
        ("0000" + _BODY + _ASSIGNED + "00000000", "left over"),
        ("0002" + _BODY + _ASSIGNED + "0000", "4 bytes are wanted"),
        ("0002" + _BODY + "7fffffff", "can't have 2147483647 elements"),
        ("0002" + _BODY + "00000001" + "00026331" + "ffffffff", "can't have -1 elements"),
        ("0002" + _BODY + _ASSIGNED + "00000000" + "00000000" + "ff", "left over"),
    ],
)
def test_broken_assignments_are_refused(text: str, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        decode_assignment(bytes.fromhex(text))


@given(st.binary(max_size=200))
def test_arbitrary_bytes_raise_protocol_errors_only(data: bytes) -> None:
    for decode in (decode_metadata, decode_assignment):
        with contextlib.suppress(ProtocolError):
            decode(data)


@given(st.data())
def test_every_cut_of_real_bytes_is_read_or_refused(data: st.DataObject) -> None:
    whole = bytes.fromhex("0002" + _CONFIG_STATE + "00000047" + ASSIGNMENTS[2])
    cut = data.draw(st.integers(0, len(whole)))
    flipped = bytearray(whole[:cut])
    if cut:
        flipped[data.draw(st.integers(0, cut - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ProtocolError):
        decode_metadata(bytes(flipped))


_WORK = st.dictionaries(st.text(max_size=8), st.lists(st.integers(-1, 9), unique=True, max_size=4), max_size=4).map(
    lambda tasks_of: tuple((name, task) for name, tasks in tasks_of.items() for task in tasks)
)


@given(st.sampled_from([1, 2]), _WORK, _WORK, st.integers(0, 2**31 - 1))
def test_values_survive_a_round_trip(
    version: int, assigned: tuple[tuple[str, int], ...], revoked: tuple[tuple[str, int], ...], delay_ms: int
) -> None:
    assignment = _assignment(version, assigned, revoked=revoked, scheduled_delay_ms=delay_ms)
    metadata = Metadata(version, URL, -1, assignment)
    assert decode_metadata(encode_metadata(metadata)) == metadata


def test_owned_is_what_was_there_less_revoked_plus_assigned() -> None:
    """In versions 1 and 2 `assigned` is only the delta of the last round (seen on 4.3.1 with two workers)."""
    before = _assignment(assigned=(("a", -1), ("a", 0), ("b", 0)))
    delta = _assignment(assigned=(("c", 0),), revoked=(("b", 0),))
    assert owned_work(Metadata(2, URL, 42, before), delta) == (("a", -1), ("a", 0), ("c", 0))
    assert owned_work(Metadata(2, URL, -1), delta) == (("c", 0),)
    assert owned_work(Metadata(2, URL, 42, before), None) == (("a", -1), ("a", 0), ("b", 0))


def test_what_was_taken_away_is_held_until_the_member_joins_again() -> None:
    """REST shows such a task no more, while it may still commit (seen on 4.3.1)."""
    before = Assignment(2, 0, "m", URL, 42, assigned=(("a", -1), ("a", 0)))
    delta = Assignment(2, 0, "m", URL, 43, assigned=(("c", 0),), revoked=(("a", 0),))
    assert held_work(Metadata(2, URL, 42, before), delta) == {("a", -1), ("a", 0), ("c", 0)}
    assert held_work(Metadata(2, URL, -1), delta) == {("c", 0)}
    assert held_work(None, None) == frozenset()


def _raw(state: str = "Stable", protocol_type: str = "connect", members: int = 2) -> RawGroup:
    assignment = encode_assignment(Assignment(2, 0, "m0", "http://w0:8083/", 7, (("c", 0),)))
    found = [
        RawGroupMember(f"m{n}", "c", "h", encode_metadata(Metadata(2, f"http://w{n}:8083/", 5)), assignment)
        for n in reversed(range(members))
    ]
    return RawGroup("g", state, protocol_type, "sessioned", tuple(found))


def test_a_stable_group_names_leader_urls_and_offsets_in_a_stable_order() -> None:
    group = connect_group(_raw())
    assert (group.leader_member_id, group.leader_url) == ("m0", "http://w0:8083/")
    assert [(m.member_id, m.leader, m.url, m.config_offset) for m in group.members] == [
        ("m0", True, "http://w0:8083/", 7),
        ("m1", False, "http://w1:8083/", 7),
    ]
    assert [(m.connectors(), m.tasks()) for m in group.members] == [((), (("c", 0),))] * 2


def test_a_group_in_a_rebalance_tells_members_but_not_their_work() -> None:
    """4.x keeps the assignments of the round before; they must not be shown as who runs what."""
    group = connect_group(_raw("CompletingRebalance"))
    assert group.leader_member_id is None
    assert [(m.url, m.connectors(), m.tasks()) for m in group.members] == [(None, None, None)] * 2


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (RawGroup("g", "Dead", "", "", ()), "'g' does not exist"),
        (_raw(protocol_type="consumer"), "protocol type 'consumer'"),
        (RawGroup("g", "Empty", "", "", ()), "plain consumer group"),
    ],
)
def test_what_is_no_connect_group_is_said(raw: RawGroup, text: str) -> None:
    with pytest.raises(NotFoundError, match=text):
        connect_group(raw)


def test_a_worker_of_a_dedicated_mirror_maker_has_no_rest() -> None:
    """Its bytes, of Kafka 4.3.1: NOTUSED was taken for a host of that name."""
    member_id = "a->b-9d010e10-9d89-405d-a900-847128c1318f"
    metadata = bytes.fromhex("0002" + "00074e4f5455534544" + "0000000000000011" + "ffffffff")
    leader = len(member_id).to_bytes(2, "big") + member_id.encode()
    work = "00000001" + "00154d6972726f72536f75726365436f6e6e6563746f72" + "00000001" + "00000000" + "00000000" * 2
    rest = bytes.fromhex("00074e4f5455534544" + "0000000000000011" + work)
    assignment = bytes.fromhex("00020000") + leader + rest
    raw = RawGroupMember(member_id, "a->b", "/127.0.0.1", metadata, assignment)
    group = connect_group(RawGroup("a-mm2", "Stable", "connect", "sessioned", (raw,)))
    [member] = group.members
    assert (member.url, member.has_rest, group.leader_url, group.is_mirror_maker) == (None, False, None, True)
    assert (member.leader, member.tasks()) == (True, (("MirrorSourceConnector", 0),))
