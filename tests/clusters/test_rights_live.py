"""ACLs on a real broker: every missing right is named, and what is printed grants it.

A printed `kafka-acls` line is believed only after it was parsed, applied, and made the same command succeed.
"""

from __future__ import annotations

import pytest
from confluent_kafka.admin import ResourceType  # type: ignore[attr-defined]  # not listed as re-exported

from tests.open_transactions import zombie
from tests.sandbox_fixtures import PATIENCE_S
from tests.secure_user import Scene, error

pytestmark = pytest.mark.live


@pytest.mark.parametrize("via", ["native", "producer"])
def test_fence_names_the_missing_right_and_its_line_grants_it(scene: Scene, via: str) -> None:
    ids = scene.known_ids(scene.unique, f"{scene.unique} b")
    command = ["fence", *ids, "--yes", "-o", "json", "--via", via]

    nothing = scene.run(*command)
    assert nothing.exit_code == 5, nothing.stderr
    assert {row["outcome"] for row in nothing.json()["data"]["rows"]} == {"failed"}
    assert ids[0] in error(nothing)

    scene.grant(ResourceType.TRANSACTIONAL_ID, ids[0], "DESCRIBE")
    scene.grant(ResourceType.TRANSACTIONAL_ID, ids[1], "DESCRIBE")
    described = scene.run(*command)
    assert described.exit_code == 5, described.stderr
    assert [row["before"]["state"] for row in described.json()["data"]["rows"]] == ["Empty", "Empty"]
    assert {row["error"]["code"] for row in described.json()["data"]["rows"]} == {
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
    }
    assert "WRITE on TransactionalId" in error(described)

    scene.apply_hint(described, "WRITE on TransactionalId")
    allowed = scene.run(*command)
    assert allowed.exit_code == 0, allowed.stderr
    assert {row["outcome"] for row in allowed.json()["data"]["rows"]} == {"fenced"}


def test_one_paste_is_enough_for_who_had_no_right(scene: Scene) -> None:
    """The hint used to grant DESCRIBE alone, so that the next run failed for want of WRITE."""
    (one,) = scene.known_ids(scene.unique)
    refused = scene.run("fence", one, "--yes", "-o", "json")
    assert refused.exit_code == 5
    assert "DESCRIBE on TransactionalId" in error(refused)
    scene.apply_hint(refused, "DESCRIBE on TransactionalId")
    assert scene.run("fence", one, "--yes").exit_code == 0


def test_one_id_without_a_right_does_not_hold_up_the_other(scene: Scene) -> None:
    mine, other = scene.known_ids(f"{scene.unique}-mine", f"{scene.unique}-other")
    scene.grant(ResourceType.TRANSACTIONAL_ID, mine, "WRITE")
    for granted in ("nothing", "DESCRIBE"):
        if granted != "nothing":
            scene.grant(ResourceType.TRANSACTIONAL_ID, other, granted)
        outcome = scene.run("fence", mine, other, "--yes", "-o", "json")
        assert outcome.exit_code == 7, outcome.stderr
        rows = {row["transactional_id"]: row["outcome"] for row in outcome.json()["data"]["rows"]}
        assert rows == {mine: "fenced", other: "failed"}
        assert other in error(outcome)
        assert mine not in error(outcome)


@pytest.mark.parametrize("command", [["txn", "describe"], ["txn", "coordinator"]])
def test_a_question_about_an_id_needs_describe(scene: Scene, command: list[str]) -> None:
    (one,) = scene.known_ids(scene.unique)
    refused = scene.run(*command, one, "-o", "json")
    assert refused.exit_code == 5
    assert one in error(refused)
    scene.apply_hint(refused, "DESCRIBE on TransactionalId")
    assert scene.run(*command, one).exit_code == 0


@pytest.mark.parametrize("command", [["txn", "list"], ["fence", "--dry-run", "--prefix"]])
def test_an_empty_listing_says_that_ids_may_be_hidden(scene: Scene, command: list[str]) -> None:
    (one,) = scene.known_ids(scene.unique)
    command = [*command, scene.unique] if command[-1] == "--prefix" else command
    hidden = scene.run(*command, "-o", "json")
    assert (hidden.exit_code, hidden.json()["data"]["rows"]) == (0, [])
    (hint,) = [entry["hint"] for entry in hidden.json()["errors"] if entry["code"] == "ids_may_be_hidden"]
    scene.apply(hint.splitlines()[-1])
    seen = scene.run(*command, "-o", "json").json()
    assert one in [row["transactional_id"] for row in seen["data"]["rows"]]
    assert "ids_may_be_hidden" not in [entry["code"] for entry in seen["errors"]]


@pytest.mark.parametrize("command", [["txn", "producers"], ["txn", "hanging"]])
def test_producers_need_read_on_the_topic(scene: Scene, command: list[str]) -> None:
    topic = scene.topic(scene.unique)
    command = [*command, "--topic", topic, "-o", "json"]
    refused = scene.run(*command)
    assert refused.exit_code == 5
    assert topic in error(refused)
    scene.grant(ResourceType.TOPIC, topic, "DESCRIBE")
    refused = scene.run(*command)
    assert refused.exit_code == 5
    assert topic in error(refused)
    scene.apply_hint(refused, "READ on Topic")
    assert scene.run(*command).exit_code == 0

    scene.revoke_all()
    scene.apply_hint(scene.run(*command), "DESCRIBE on Topic")
    assert scene.run(*command).exit_code == 0


def test_an_abort_marker_needs_alter_on_the_cluster(scene: Scene) -> None:
    """The marker is forced upon an ordinary open transaction: only the right to write it is looked at here."""
    topic = scene.topic(scene.unique)
    producer = zombie(scene.secure.stack, scene.unique, topic)
    scene.grant(ResourceType.TRANSACTIONAL_ID, scene.unique, "DESCRIBE")
    scene.grant(ResourceType.TOPIC, topic, "READ")
    place = ["--topic", topic, "--partition", "0", "--start-offset", "0"]
    command = ["txn", "abort", *place, "--force", "--unseen-parts"]  # no other topic may be described
    refused = scene.run(*command, "--yes", "-o", "json")
    assert refused.exit_code == 5, refused.stderr
    (row,) = refused.json()["data"]["rows"]
    assert (row["outcome"], row["error"]["code"], row["lso_after"]) == ("failed", "CLUSTER_AUTHORIZATION_FAILED", 0)
    scene.apply_hint(refused, "ALTER on Cluster")
    aborted = scene.run(*command, "--yes", "-o", "json")
    assert aborted.exit_code == 0, aborted.stderr
    assert aborted.json()["data"]["rows"][0]["outcome"] == "aborted"
    producer.abort_transaction(PATIENCE_S)
    producer.close()


@pytest.mark.parametrize("command", [["offsets", "list"], ["task-counts", "list"], ["txn", "log"]])
def test_reading_a_topic_is_granted_line_by_line(scene: Scene, command: list[str]) -> None:
    """At most one failure per topic: READ is named at once, also where DESCRIBE is what was refused."""
    topics = [scene.topic(f"{scene.unique}-offsets"), scene.topic(f"{scene.unique}-configs"), "__transaction_state"]
    scene.known_ids(scene.unique)
    command = [*command, "-g", scene.unique, "--offset-topic", topics[0], "--config-topic", topics[1], "-o", "json"]
    refused = 0
    while (outcome := scene.run(*command)).exit_code != 0:
        assert outcome.exit_code == 5, outcome.stderr
        assert any(f"READ on Topic {topic} is needed" in error(outcome) for topic in topics)
        scene.apply_hint(outcome, "READ on Topic")
        refused += 1
        assert refused <= len(topics)
    assert refused


def test_a_group_needs_describe(scene: Scene) -> None:
    """The hint used to say in prose that DESCRIBE is needed."""
    command = ["workers", "list", "-g", scene.unique, "-o", "json"]
    refused = scene.run(*command)
    assert refused.exit_code == 5
    assert scene.unique in error(refused)
    scene.apply_hint(refused, "DESCRIBE on Group")
    assert scene.run(*command).exit_code == 1  # there is no such group
