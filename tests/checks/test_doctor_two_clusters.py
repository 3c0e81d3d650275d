"""`doctor --with PROFILE`: a connector that runs on two Connect clusters, on fakes of both."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from eosctl.checks.two_clusters import findings_on_two_clusters
from eosctl.core.findings import Finding
from eosctl.errors import UnreachableError
from tests.conftest import Invoke
from tests.fakes.connectors import FakeTask
from tests.fakes.offset_topics import GLOBAL, WORKER, OffsetWorld

JDBC = {"connector.class": "Jdbc", "connection.url": "jdbc:postgresql://db/orders", "topic.prefix": "a-"}


def group(cluster_id: str, group_id: str, connectors: Mapping[str, tuple[Mapping[str, str], str]]) -> OffsetWorld:
    """A group with these connectors: name -> config, and RUNNING, PAUSED or STOPPED."""
    made = OffsetWorld(cluster_id=cluster_id, group_id=group_id)
    made.topics.add_topic(GLOBAL, 1)
    for name, (config, state) in connectors.items():
        if state == "STOPPED":
            made.connect.add(name, config, state=state)
            continue
        added = made.connect.add(name, config, tasks=1)
        added.tasks[0] = FakeTask(state, made.connect.leader)
        made.connect.own(made.connect.leader, (name, 0))
    return made


def found(here: OffsetWorld, there: OffsetWorld) -> list[Finding]:
    return findings_on_two_clusters(here.app(), {"other": there.app()})


def told(findings: list[Finding]) -> list[tuple[str, str, bool]]:
    return [(str(each.code), each.severity, each.certain) for each in findings]


def commit(world: OffsetWorld, connector: str, table: str) -> None:
    world.topics.put(GLOBAL, f'["{connector}",{{"table":"{table}"}}]'.encode(), b'{"n":1}')


BOTH_RUN = [("runs_on_two_clusters", "error", True)]
MAY = [("may_run_on_two_clusters", "warning", True)]
UNSURE = [("may_run_on_two_clusters", "warning", False)]
INFO = [("on_two_clusters", "info", True)]


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        ("RUNNING", "RUNNING", BOTH_RUN),
        ("RUNNING", "STOPPED", INFO),
        ("STOPPED", "RUNNING", INFO),
        ("RUNNING", "PAUSED", INFO),  # a paused task reads nothing
        ("STOPPED", "STOPPED", []),
        ("RUNNING", "FAILED", INFO),
    ],
)
@pytest.mark.parametrize("name", ["orders", "orders-moved"])
def test_the_same_config_by_whether_it_runs(
    mine: str, theirs: str, expected: list[tuple[str, str, bool]], name: str
) -> None:
    """After a move that was not finished both read the source, and nothing said so."""
    here, there = group("k1", "a", {"orders": (JDBC, mine)}), group("k2", "b", {name: (JDBC, theirs)})
    assert told(found(here, there)) == expected


def test_two_groups_of_one_kafka_cluster_and_what_mends_it() -> None:
    here, there = group("k", "a", {"orders": (JDBC, "RUNNING")}), group("k", "b", {"orders": (JDBC, "RUNNING")})
    [finding] = found(here, there)
    assert (str(finding.code), finding.subject) == ("runs_on_two_clusters", "orders")
    assert "`eosctl connectors stop orders`" in finding.fix
    assert "`eosctl connectors stop -p other orders`" in finding.fix
    assert finding.evidence["group_id"] == "b"


def test_the_same_clients_and_offsets_topic_are_not_needed() -> None:
    """A move gives it those of the other cluster."""
    moved = {**JDBC, "offsets.storage.topic": "own", "producer.override.linger.ms": "5"}
    here, there = group("k1", "a", {"orders": (JDBC, "RUNNING")}), group("k2", "b", {"orders": (moved, "RUNNING")})
    assert told(found(here, there)) == BOTH_RUN


def test_with_one_config_other_source_partitions_so_far_are_no_excuse() -> None:
    here, there = group("k1", "a", {"orders": (JDBC, "RUNNING")}), group("k2", "b", {"orders": (JDBC, "RUNNING")})
    commit(here, "orders", "t")
    commit(there, "orders", "u")
    assert told(found(here, there)) == BOTH_RUN


@pytest.mark.parametrize("url", ["${env:DB}", "${file:/x:url}", "jdbc:postgresql://localhost/orders"])
def test_what_each_worker_resolves_for_itself_is_no_certain_accusation(url: str) -> None:
    config = {**JDBC, "connection.url": url}
    here, there = group("k1", "a", {"orders": (config, "RUNNING")}), group("k2", "b", {"orders": (config, "RUNNING")})
    assert told(found(here, there)) == UNSURE
    commit(here, "orders", "t")
    assert told(found(here, there)) == UNSURE, "the other one has not committed yet"
    commit(there, "orders", "u")
    assert told(found(here, there)) == UNSURE, "it may have begun with another table"
    commit(there, "orders", "t")
    assert told(found(here, there)) == MAY


def test_a_name_alone_proves_nothing() -> None:
    other = {**JDBC, "connection.url": "jdbc:postgresql://staging/orders"}
    here, there = group("k1", "a", {"orders": (JDBC, "RUNNING")}), group("k2", "b", {"orders": (other, "RUNNING")})
    assert told(found(here, there)) == UNSURE
    commit(here, "orders", "t")
    commit(there, "orders", "u")
    assert told(found(here, there)) == [], "they read different source partitions"
    commit(there, "orders", "t")
    assert told(found(here, there)) == MAY


def test_other_names_and_configs_with_the_same_source_partitions_are_information() -> None:
    other = {**JDBC, "topic.prefix": "b-"}
    here, there = group("k1", "a", {"orders": (JDBC, "RUNNING")}), group("k2", "b", {"moved": (other, "RUNNING")})
    assert told(found(here, there)) == []
    commit(here, "orders", "t")
    commit(there, "moved", "t")
    assert told(found(here, there)) == [("may_run_on_two_clusters", "info", True)]


def test_a_sink_reads_no_source() -> None:
    sink = {**JDBC, "connector.class": "JdbcSink"}
    here, there = group("k1", "a", {"orders": (sink, "RUNNING")}), group("k2", "b", {"orders": (sink, "RUNNING")})
    assert found(here, there) == []


def test_while_members_do_not_report_their_tasks_nothing_rests_for_certain() -> None:
    here, there = group("k1", "a", {"orders": (JDBC, "RUNNING")}), group("k2", "b", {"orders": (JDBC, "STOPPED")})
    there.connect.rebalance(lasts_s=10**6)
    assert told(found(here, there)) == UNSURE


def test_what_can_not_be_asked_there_is_unseen() -> None:
    here, there = group("k1", "a", {"orders": (JDBC, "RUNNING")}), group("k2", "b", {"orders": (JDBC, "RUNNING")})
    there.connect.fail_always("connectors", UnreachableError("no answer", hint="Start it."))
    assert told(found(here, there)) == [("other_group_unseen", "warning", False)]
    assert told(found(here, here)) == [("other_group_unseen", "warning", False)], "the same group is no other"


PROFILES = """\
profiles:
  other: {bootstrap_server: "localhost:1", group_id: b, connect_url: ["http://w9:8083"]}
"""


def test_as_typed(invoke: Invoke, tmp_path: Path) -> None:
    here = group("k", "connect", {"orders": (JDBC, "RUNNING")})
    there = here.other_group("b", "http://w9:8083")
    there.add("orders", JDBC, tasks=1).tasks[0] = FakeTask("RUNNING", there.leader)
    there.own(there.leader, ("orders", 0))
    config = tmp_path / "config.yaml"
    config.write_text(PROFILES)
    flags = ["--config", str(config), "-b", "localhost:1", "-g", "connect", "-u", WORKER, "-o", "json"]

    def doctor(*words: str) -> Any:
        return invoke("doctor", *flags, *words, **here.surroundings)

    done = doctor("--with", "other")
    rows = {row["code"]: row for row in done.json()["data"]["rows"]}
    assert (done.exit_code, rows["runs_on_two_clusters"]["severity"]) == (3, "error"), done.stderr
    assert "runs_on_two_clusters" not in {row["code"] for row in doctor().json()["data"]["rows"]}
    assert doctor("--with", "nobody").exit_code == 2
    assert doctor("--with", "other", "--for", "flink").exit_code == 2
