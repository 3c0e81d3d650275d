"""A group without members: stopped, forgotten, or never there."""

from __future__ import annotations

import pytest

from eosctl.core.configs.fold import fold_config_topic
from eosctl.core.ids import TransactionalId
from eosctl.core.records import Bounds, TopicRead
from eosctl.errors import NotFoundError
from eosctl.group.observation.absence import GroupEvidence, OtherGroup, Recorded, existing_groups_hint, judge_absence
from tests.fakes.config_topic import config_records, created


def evidence(
    *ids: TransactionalId,
    recorded: tuple[str, ...] | None = (),
    others: dict[str, set[str]] | None = None,
    listed: bool = True,
    files: dict[str, str] | None = None,
) -> GroupEvidence:
    """Of connector c; what the other groups have read is not known."""
    topic = None if recorded is None else Recorded(recorded)
    groups = None if others is None else {name: OtherGroup(connectors) for name, connectors in others.items()}
    return GroupEvidence(["c"], ids if listed else None, "configs", topic, groups, files or {})


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ((), False),
        (("connect-cluster-h", "h-c-0", "g-other-0", "g-c"), False),
        (("h-c-0", "connect-cluster-g"), True),
        (("h-c-0", "g-c-1"), True),
    ],
)
def test_a_group_has_ids_where_its_leader_or_a_task_of_its_connectors_has_one(
    listed: tuple[TransactionalId, ...], expected: bool
) -> None:
    assert evidence(*listed).has_ids("g") is expected


@pytest.mark.parametrize(
    "found",
    [
        evidence(TransactionalId("g-c-0")),
        evidence(TransactionalId("g-d-0"), recorded=("d",)),
        evidence(TransactionalId("connect-cluster-g"), recorded=None),
        evidence(recorded=("c",)),
        evidence(recorded=("c",), listed=False),
        evidence(recorded=("c",), others={"h": {"d"}}),
        evidence(TransactionalId("h-d-0"), TransactionalId("g-b-c-0"), TransactionalId("c-0"), recorded=("c",)),
        evidence(
            TransactionalId("g-c-0"), TransactionalId("h-c-0"), recorded=("c",), others={"h": {"c"}}
        ),  # two groups, each with its own connector c
        evidence(recorded=("c",), files={"w1.properties": "h", "w2.properties": "g"}),
    ],
)
def test_ids_or_a_config_topic_with_the_connector_show_that_a_group_was_there(found: GroupEvidence) -> None:
    assert found.missing("g") is None


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (evidence(), "no transactional id is its leader's or a task's of it, and topic configs has no connector c"),
        (evidence(recorded=None), "there is no topic configs to be read"),
        (evidence(listed=False), "transactional ids can't be listed, and topic configs has no connector c"),
        (
            evidence(TransactionalId("h-c-0"), recorded=("c",)),
            "topic configs seems to be another group's: h-c-0 looks like an id",
        ),
        (evidence(recorded=("c",), others={"h": {"c"}}), "another group's: members of group h have connector c"),
        (evidence(recorded=("c",), files={"w.properties": "h"}), "another group's: w.properties has group.id=h"),
    ],
)
def test_what_was_looked_at_in_vain_is_said(found: GroupEvidence, said: str) -> None:
    assert said in str(found.missing("g"))


@pytest.mark.parametrize(
    ("connectors", "said"),
    [("", " has no connector"), ("cab", " a, b, c"), ("abcd", " a, b, c and 1 more"), ("abcde", " a, b, c and 2 more")],
)
def test_three_connectors_that_a_topic_lacks_are_named(connectors: str, said: str) -> None:
    assert str(GroupEvidence(connectors, (), "configs", Recorded()).missing("g")).endswith(said)


@pytest.mark.parametrize(("ends", "newest", "end"), [((), -1, 0), ((0,), -1, 0), ((7,), -1, 7)])
def test_a_config_topic_without_a_commit_of_tasks(ends: tuple[int, ...], newest: int, end: int) -> None:
    """A connector may be there whose tasks nobody has committed yet."""
    records = config_records(("connector-c", {"properties": {}}))
    read = TopicRead("configs", tuple(Bounds(0, 0, each, each) for each in ends), (), 0)
    assert Recorded.of(fold_config_topic(records), read) == Recorded(frozenset({"c"}), newest, end)
    assert Recorded.of(fold_config_topic([]), read) == Recorded(frozenset(), newest, end)


def test_ids_of_connectors_that_the_topic_lacks_do_not_make_it_anothers() -> None:
    assert evidence(TransactionalId("h-c-0"), TransactionalId("h-d-0")).other_owner("g") is None


def test_members_have_read_their_config_topic_behind_its_newest_commit_and_up_to_its_end() -> None:
    """A group with a connector of the same name is no other group that has this topic."""
    records = config_records(("session-key", {}), *created("c", 1), ("session-key", {}))
    read = TopicRead("configs", (Bounds(0, 0, 6, 6),), tuple(records), len(records))
    recorded = Recorded.of(fold_config_topic(records), read)
    assert recorded == Recorded(frozenset({"c"}), 3, 6)
    told = {
        offset: GroupEvidence(["c"], None, "configs", recorded, {"h": OtherGroup({"c"}, offset)}).other_owner("g")
        is not None
        for offset in (None, 3, 4, 6, 7)
    }
    assert told == {None: True, 3: False, 4: True, 6: True, 7: False}


def test_without_a_config_topic_a_connector_of_that_name_in_another_group_is_enough() -> None:
    """An offsets topic of a running group, and the name of a group without members, were written to at once."""
    others = {"h": {"c"}}
    said = evidence(recorded=None, others=others).other_owner("g")
    assert said == ("there is no topic configs to be read that shows its owner: members of group h have connector c")
    assert evidence(TransactionalId("g-c-0"), recorded=None, others=others).other_owner("g") is None
    assert evidence(recorded=None, others={"h": {"d"}}).other_owner("g") is None


@pytest.mark.parametrize("found", [("g-c-0",), ()])
def test_a_topic_that_others_use_is_theirs_though_the_group_has_ids(found: tuple[TransactionalId, ...]) -> None:
    by_members = evidence(*found, recorded=("c",), others={"h": {"c"}}).other_owner("g")
    assert by_members == "topic configs seems to be another group's: members of group h have connector c"
    assert "w has group.id=h" in str(evidence(*found, files={"w": "h"}).other_owner("g"))
    assert evidence(*found, recorded=("c",), others={"h": {"d"}}, files={"w": "g"}).other_owner("g") is None


@pytest.mark.parametrize(
    ("state", "answering", "missing", "doubt"),
    [
        ("Empty", None, None, None),
        ("Empty", "http://w", None, "the worker at http://w answers, but the group g has no member"),
        ("Dead", None, None, "the coordinator has forgotten the group g"),
    ],
)
def test_what_is_doubtful(state: str, answering: str | None, missing: str | None, doubt: str | None) -> None:
    said = judge_absence("g", state=state, answering=answering, missing=missing)
    assert (said is None) == (doubt is None)
    assert str(doubt or "") in str(said)


@pytest.mark.parametrize(
    ("answering", "missing", "said", "hint"),
    [
        ("http://w", None, "the worker at http://w answers, but the Connect group 'g' does not exist", "of the worker"),
        (
            None,
            "no id",
            "'g' does not exist on this Kafka cluster, and nothing shows that it ever did: no id",
            "and -b",
        ),
    ],
)
def test_a_group_that_was_never_there_is_not_found(
    answering: str | None, missing: str | None, said: str, hint: str
) -> None:
    with pytest.raises(NotFoundError, match=said) as raised:
        judge_absence("g", state="Dead", answering=answering, missing=missing)
    assert hint in str(raised.value.hint)


def test_the_groups_that_are_there_are_named_the_most_alike_first() -> None:
    there = ["a", "b", "connect-b", "conect", "d", "e"]
    assert existing_groups_hint("connect", there, ["h:1", "i:1"]) == (
        "Connect groups of this Kafka cluster: conect, connect-b, e, a, b and 1 more, which "
        "`kafka-groups.sh --bootstrap-server h:1,i:1 --list --protocol connect` (of Kafka 4.0 or newer) lists."
    )
    assert existing_groups_hint("connect", ["x"], ["h:1"]) == "Connect groups of this Kafka cluster: x."
    assert existing_groups_hint("a", list("abcde"), ["h:1"]) == "Connect groups of this Kafka cluster: a, b, c, d, e."


def test_where_no_group_can_be_seen_the_right_to_see_one_may_be_missing() -> None:
    said = existing_groups_hint("g", [], ["h:1"])
    assert said.startswith("No Connect group can be seen on this Kafka cluster; `kafka-groups.sh ")
    assert said.endswith("lists those that one may DESCRIBE.")
