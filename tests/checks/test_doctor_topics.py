"""What `eosctl doctor` finds of Connect's and the coordinators' topics, and of a config topic after compaction."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from eosctl.core.records import TopicDescription
from eosctl.errors import UnreachableError
from tests.conftest import Invoke
from tests.envelope import envelope_of
from tests.fakes.config_topic import CONFIG_TOPIC, config_records, created
from tests.fakes.config_world import ConfigWorld, compacted
from tests.fakes.doctor_scene import (
    HEALTHY,
    OFFSETS,
    W1,
    cluster,
    doctor,
    found,
    transaction_topic,
    write_worker_file,
)
from tests.fakes.faults import Call

TRANSACTION_LOG = "__transaction_state"
STATUS = "connect-status"


def with_topics(*more: TopicDescription) -> ConfigWorld:
    return cluster(described=[compacted(CONFIG_TOPIC, 1), compacted(OFFSETS, 25), *more])


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        (lambda: with_topics(transaction_topic(replicas=3, least=2)), []),
        (lambda: with_topics(transaction_topic(replicas=3, least=4)), [("too_few_replicas", "error")]),
        (lambda: with_topics(transaction_topic(replicas=3, least=3)), [("no_spare_replica", "warning")]),
        (lambda: with_topics(transaction_topic(replicas=3, least=1)), [("one_insync_replica", "warning")]),
        (lambda: with_topics(transaction_topic(replicas=1, least=1)), [("few_replicas", "warning")]),
        (with_topics, [("transaction_topic_unseen", "info")]),
    ],
)
def test_the_coordinators_log(
    invoke: Invoke, there: Callable[[], ConfigWorld], expected: list[tuple[str, str]]
) -> None:
    """Nobody looked at it, and transactions that no broker could write were looked for in vain."""
    rows = found(invoke, there(), 3 if ("too_few_replicas", "error") in expected else 0)
    assert [row[1:] for row in rows if row[0] == "topics"] == expected


def test_partitions_of_the_coordinators_log_without_a_leader(invoke: Invoke) -> None:
    there = cluster()
    there.brokers.state.leaderless.update({(TRANSACTION_LOG, 7), (TRANSACTION_LOG, 11)})
    rows = envelope_of(doctor(invoke, there, "-o", "json"), "doctor", doctor(invoke, there).exit_code)["data"]["rows"]
    [row] = [row for row in rows if row["code"] == "partition_without_leader"]
    assert (row["severity"], row["evidence"]) == ("error", {"partitions": [7, 11]})
    assert row["message"].startswith("2 partitions of __transaction_state can't be asked (")


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_a_status_topic_on_which_no_worker_starts(invoke: Invoke, policy: str) -> None:
    there = with_topics(transaction_topic(), compacted(STATUS, 5, policy=policy))
    assert found(invoke, there, 3) == [("topics", "status_not_compact", "error"), *HEALTHY]
    assert found(invoke, with_topics(transaction_topic(), compacted(STATUS, 5)), 0) == HEALTHY


def fixes(invoke: Invoke, there: ConfigWorld, exit_code: int = 3, *more: str) -> dict[str, str]:
    """Code -> fix of the errors."""
    rows = envelope_of(doctor(invoke, there, "-o", "json", *more), "doctor", exit_code)["data"]["rows"]
    return {row["code"]: row["fix"] for row in rows if row["severity"] == "error"}


@pytest.mark.parametrize(
    ("code", "name", "partitions"),
    [("status_not_compact", STATUS, 5), ("config_topic", CONFIG_TOPIC, 1), ("not_compacted", OFFSETS, 25)],
)
def test_a_wrong_cleanup_policy_is_mended_by_the_command_that_is_printed(
    invoke: Invoke, code: str, name: str, partitions: int
) -> None:
    """The brokers were left out of one of them, of the others the whole command."""
    topics = {CONFIG_TOPIC: compacted(CONFIG_TOPIC, 1), OFFSETS: compacted(OFFSETS, 25)}
    topics |= {name: compacted(name, partitions, policy="delete")}
    command = "`kafka-configs.sh --bootstrap-server localhost:1 --alter --entity-type topics --entity-name"
    fix = fixes(invoke, cluster(described=[*topics.values(), transaction_topic()]))[code]
    assert fix.startswith(f"{command} {name} --add-config cleanup.policy=compact`")


def gone(there: ConfigWorld, *, forgotten: bool) -> ConfigWorld:
    """The workers died at their start, some time ago."""
    there.connect.stop_worker(W1)
    there.connect.forgotten = forgotten
    return there


@pytest.mark.parametrize("workers", ["up", "Empty", "Dead"])
def test_a_config_topic_with_three_partitions_has_a_way_out_that_can_be_gone(invoke: Invoke, workers: str) -> None:
    """ "Give it one partition" is what no command does; of a group that was forgotten nothing was said at all."""
    there = cluster(described=[compacted(CONFIG_TOPIC, 3), compacted(OFFSETS, 25), transaction_topic()])
    there = there if workers == "up" else gone(there, forgotten=workers == "Dead")
    steps = fixes(invoke, there)["config_topic"].split(", then ")
    assert steps[0].endswith("takes another one. Stop all workers")
    where = "--bootstrap-server localhost:1"
    assert steps[1] == (
        f"`kafka-topics.sh {where} --create --topic connect-configs-one --partitions 1 --replication-factor 3 --config "
        "cleanup.policy=compact`"
    )
    read, keys, write = steps[2].split(" | ")
    assert read.startswith(
        f"`kafka-console-consumer.sh {where} --topic connect-configs --partition 0 --offset earliest"
    )
    assert keys == """grep "$(printf '\\t')\""""
    assert write.startswith(f"kafka-console-producer.sh {where} --topic connect-configs-one --property parse.key=true")
    assert steps[3].startswith("set config.storage.topic=connect-configs-one in every worker's file and start")


def test_what_workers_died_of_at_their_first_start_is_found_where_their_file_names_the_group(
    invoke: Invoke, tmp_path: Path
) -> None:
    """Nothing is known of such a group but its file: it would pass for a mistyped one."""
    file = write_worker_file(tmp_path / "w.properties")
    there = gone(
        cluster(described=[compacted(STATUS, 5, policy="delete")], connectors={}, known_ids=()), forgotten=True
    )
    assert doctor(invoke, there).exit_code == 1
    found = fixes(invoke, there, 3, "-w", str(file))
    assert "status_not_compact" in found


def test_tasks_that_compaction_made_workers_forget(invoke: Invoke) -> None:
    """A config that was changed is all that is left of the connector's, and comes after its tasks (KAFKA-17719)."""
    config, *tasks = created("orders", 1, record=1)
    there = cluster(records=config_records(*tasks, config))
    rows = envelope_of(doctor(invoke, there, "-o", "json"), "doctor", 3)["data"]["rows"]
    [row] = [row for row in rows if row["code"] == "tasks_forgotten"]
    assert (row["check"], row["severity"], row["subject"]) == ("task_counts", "error", "orders")
    assert row["fix"].startswith(
        "`eosctl connectors stop orders` (Kafka 3.5 or newer), then `eosctl connectors resume orders`"
    )
    again = cluster(records=config_records(*tasks, config, *tasks))
    assert found(invoke, again, 0) == HEALTHY


def test_what_is_left_of_a_deleted_connector_is_no_damage(invoke: Invoke) -> None:
    gone = created("gone", 2)[1:]
    assert found(invoke, cluster(records=config_records(*gone, *created("orders", 1, record=1))), 0) == HEALTHY


def test_the_config_topic_is_not_read_again_for_the_topics_with_offsets(invoke: Invoke) -> None:
    """Where no worker lists the connectors, that topic has them; its second view and the look at ids read it, too."""
    there = cluster(faults={"connectors": UnreachableError("no")})
    reads = list[Call]()
    there.topics.before("read", lambda call: reads.append(call) if call.what[0] == CONFIG_TOPIC else None)
    doctor(invoke, there)
    assert len(reads) == 3
