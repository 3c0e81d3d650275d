"""What doctor puts below the setting that brings it about."""

from __future__ import annotations

from typing import cast

import pytest
from msgspec.structs import replace

from eosctl.checks.causes import under_dead_brokers, under_missing_rights, under_settings, under_settings_and_rights
from eosctl.checks.ignored import IgnoredFinding
from eosctl.core.findings import ERROR, WARNING, Finding
from eosctl.explain.entries import known_entries

CODES = {str(code): code for code in known_entries()}


def finding(code: str, subject: str, message: str = "", severity: str = ERROR) -> Finding:
    return Finding(CODES[code], severity, subject, message or f"{subject} has it", "mend it")


def test_what_tasks_died_of_stands_below_the_setting_that_they_die_of() -> None:
    """acks=1 was three rows, of which one said to look again in a minute."""
    cause, other = finding("producer_refuses", "c"), finding("producer_refuses", "c2/0")
    died, due = finding("producer_refuses", "c/0"), finding("mis_ordered", "c", severity=WARNING)
    found = under_settings({"failures": [died, other], "task_counts": [due], "connectors": [cause]})
    assert (found["failures"], found["task_counts"]) == ([other], [])
    [told] = found["connectors"]
    follows = told.evidence["follows"]
    assert isinstance(follows, list)
    assert [(each["code"], each["subject"]) for each in follows] == [("producer_refuses", "c/0"), ("mis_ordered", "c")]


def test_a_setting_that_no_task_died_of_yet_explains_nothing() -> None:
    cause, due = finding("producer_refuses", "c"), finding("mis_ordered", "c", severity=WARNING)
    before = {"failures": [finding("record_too_large", "c/0")], "task_counts": [due], "connectors": [cause]}
    assert under_settings(before) == before


def test_a_gate_about_a_topic_stands_below_what_is_said_of_the_topic() -> None:
    """A wrong cleanup policy was two errors, and one of the remedies was no command."""
    cause = finding("not_compacted", "connect-offsets")
    gate = finding("offset_topic", "g", "connect-offsets has cleanup.policy=delete")
    missing = finding("offset_topic", "g", "there is no topic my-connect-offsets")
    found = under_settings({"gates": [gate, missing], "offsets": [cause]})
    assert found["gates"] == [missing]
    assert [each.code for each in found["offsets"]] == ["not_compacted"]


def right(resource_type: str, name: str) -> Finding:
    evidence = {"resource_type": resource_type, "resource_name": name}
    return replace(finding("acl_missing", "producer User:p"), evidence=evidence, fix="`eosctl acls apply --all`")


def died_of(code: str, subject: str, text: str) -> Finding:
    return replace(finding(code, subject), evidence={"causes": ["org.apache.kafka.X: it failed", text]})


TOPIC_DENIED = "org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized to access topics: [out, b]"
ID_DENIED = (
    "org.apache.kafka.common.errors.TransactionalIdAuthorizationException: Transactional Id authorization failed."
)


@pytest.mark.parametrize(
    ("cause", "failed"),
    [
        (right("Topic", "out"), died_of("task_not_authorized", "c 1/0", TOPIC_DENIED)),
        (right("TransactionalId", "g-c 1-0"), died_of("fencing_not_authorized", "c 1/0", ID_DENIED)),
    ],
)
def test_a_task_that_lacked_a_right_stands_below_the_right(cause: Finding, failed: Finding) -> None:
    """They were two rows, and the remedy of neither had all that heals."""
    other = died_of("task_not_authorized", "d/0", TOPIC_DENIED.replace("out, b", "outer"))
    found = under_missing_rights({"failures": [failed, other], "acls": [right("Group", "x"), cause]}, group_id="g")
    assert found["failures"] == [other]
    told = found["acls"][1]
    assert told.fix == "`eosctl acls apply --all`\nThen `eosctl connectors restart --failed 'c 1'`."
    follows = told.evidence["follows"]
    assert isinstance(follows, list)
    assert [(each["code"], each["subject"]) for each in follows] == [(failed.code, "c 1/0")]


def test_a_right_that_may_not_be_needed_is_an_error_once_a_task_died_for_lack_of_it() -> None:
    """The FAILED task stood below a warning, and doctor's exit code was 0."""
    likely = replace(right("Topic", "out"), severity=WARNING)
    failed = died_of("task_not_authorized", "c/0", TOPIC_DENIED)
    [told] = under_missing_rights({"failures": [failed], "acls": [likely]}, group_id="g")["acls"]
    assert told.severity == ERROR


def test_a_failed_task_does_not_stand_below_what_is_ignored() -> None:
    """Who had accepted a missing right was not told of the tasks that died of it."""
    cause, failed = right("Topic", "out"), died_of("task_not_authorized", "c/0", TOPIC_DENIED)
    before = {"failures": [failed], "acls": [cause], "connectors": [], "task_counts": []}
    assert under_settings_and_rights(before, [IgnoredFinding("acl_missing")], group_id="g") == before
    assert under_settings_and_rights(before, [], group_id="g")["failures"] == []
    refused, setting = finding("timeout_refused", "c/0"), finding("timeout_above_broker", "c")
    before = {"failures": [refused], "acls": [], "connectors": [setting], "task_counts": []}
    assert under_settings_and_rights(before, [IgnoredFinding("timeout_above_broker")], group_id="g") == before


@pytest.mark.parametrize(("connector", "below"), [("a-b", True), ("a", False), ("b", False)])
def test_the_id_of_another_connector_explains_nothing(connector: str, below: bool) -> None:
    """The failure of `a` stood below the right on an id of `a-b`."""
    failed = died_of("fencing_not_authorized", f"{connector}/0", ID_DENIED)
    found = under_missing_rights({"failures": [failed], "acls": [right("TransactionalId", "g-a-b-0")]}, group_id="g")
    assert (found["failures"] == []) is below


def test_what_has_no_leader_stands_below_the_broker_that_is_down() -> None:
    """Topics of one replica made two rows of it, and no command mends the second."""
    down, other = finding("broker_down", "broker 3"), finding("broker_down", "broker 4")
    unseen = replace(
        finding("not_checked", "transactions", "could not ask for orders-0: LEADER_NOT_AVAILABLE"), certain=False
    )
    else_where = replace(finding("not_checked", "transactions", "could not ask for orders-1: timed out"), certain=False)
    found = under_dead_brokers({"topics": [down, other], "transactions": [unseen, else_where]})
    assert (found["transactions"], found["topics"][1]) == ([else_where], other)
    follows = found["topics"][0].evidence["follows"]
    assert isinstance(follows, list)
    assert [each["message"] for each in follows] == [unseen.message]
    without = {"topics": [finding("partition_without_leader", "orders")], "transactions": [unseen]}
    assert under_dead_brokers(without) == without


@pytest.mark.parametrize("ignored", [True, False])
def test_a_task_that_lacked_its_offsets_topic_stands_below_the_topic(ignored: bool) -> None:
    """They were two findings, a warning said that the task would create the topic, and the remedy of neither healed."""
    missing = replace(
        finding("topic_missing", "own", severity=WARNING), evidence={"connectors": ["c 1", "d"]}, fix="`create`"
    )
    failed, other = finding("internal_topic_missing", "c 1/0"), finding("internal_topic_missing", "e/0")
    before = {"failures": [failed, other], "connectors": [], "acls": [], "task_counts": [], "offsets": [missing]}
    accepted = [IgnoredFinding("topic_missing")] if ignored else []
    after = under_settings_and_rights(before, accepted, group_id="g")
    if ignored:
        assert after == before
        return
    [told] = after["offsets"]
    assert (after["failures"], told.severity) == ([other], ERROR)
    assert told.fix == "`create`\nThen `eosctl connectors restart --failed 'c 1'`."
    assert [each["subject"] for each in cast(list[dict[str, str]], told.evidence["follows"])] == ["c 1/0"]


def test_a_missing_topic_stands_below_the_offsets_that_it_hides() -> None:
    """Its fix and theirs were to be followed both, and theirs alone heals."""
    missing = replace(finding("topic_missing", "own"), evidence={"connectors": ["c"]})
    hidden = replace(finding("offsets_hidden", "c"), evidence={"topic": "own"})
    failed = finding("internal_topic_missing", "c")
    before = {
        "failures": [failed],
        "connectors": [missing],
        "acls": [],
        "task_counts": [],
        "offsets": [hidden, missing],
    }
    after = under_settings_and_rights(before, [], group_id="g")
    assert (after["failures"], after["connectors"]) == ([], [])
    [told] = after["offsets"]
    assert (told.code, told.fix) == ("offsets_hidden", hidden.fix)
    assert [each["code"] for each in cast(list[dict[str, str]], told.evidence["follows"])] == [
        "topic_missing", "internal_topic_missing"
    ]  # fmt: skip
