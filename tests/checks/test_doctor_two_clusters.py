"""`doctor --with PROFILE`: a connector that runs on two Connect clusters, on fakes of both."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from eosctl.app import App
from eosctl.checks.two_clusters import findings_on_two_clusters, pairs_of
from eosctl.core.findings import Finding
from eosctl.core.workers.connector_entry import ConnectorEntry
from eosctl.errors import UnreachableError
from eosctl.move.journal import journal_of_moves
from tests.conftest import Invoke
from tests.fakes.connectors import FakeTask
from tests.fakes.offset_topics import GLOBAL, WORKER, OffsetWorld

URL = "jdbc:postgresql://db.example.org/orders"
JDBC = {"connector.class": "Jdbc", "connection.url": URL, "topic.prefix": "a-"}


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
UNSEEN = [("other_group_unseen", "warning", False)]
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


@pytest.mark.parametrize(
    "url",
    [
        *("${env:DB}", "${file:/x:url}", "jdbc:postgresql://localhost/orders", "jdbc:sqlite:/data/orders.db"),
        *("jdbc:postgresql://db/orders", "jdbc:postgresql://db.prod:5432/orders", "jdbc:postgresql://10.0.0.5/orders"),
        *(
            "jdbc:postgresql://db.prod.svc.cluster.local/orders",
            "mongodb://a.example.org:1,b:1/orders",
            "file:///orders",
        ),
    ],
)
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


def moved(world: OffsetWorld, *events: str, group_id: str = "b", state_dir: Path) -> App:
    """An app of the group whose journal has a move of `orders` to k2."""
    app = world.app(state_dir)
    journal = journal_of_moves(app, "orders", cluster_id=world.cluster_id)
    begun = {"to": "other", "name": "orders", "cluster_id": "k2", "group_id": group_id, "state": "RUNNING", "tasks": 1}
    with journal.hold("orders"):
        journal.write("begin", direction="there", **begun)
        for event in events:
            journal.write(event)
    return app


@pytest.mark.parametrize(
    ("events", "group_id", "state", "command"),
    [
        (["end"], "b", "STOPPED", "It was moved. `eosctl connectors move --connector orders --delete`"),
        (["end"], "b", "PAUSED", "Stop it: `eosctl connectors stop orders`. `eosctl connectors move"),
        ([], "b", "STOPPED", "`eosctl connectors move --connector orders --resume`"),
        (["end"], "elsewhere", "STOPPED", "on the machine that has the journal of its move"),
    ],
)
def test_what_is_left_of_a_move_is_deleted_by_the_move(
    events: list[str], group_id: str, state: str, command: str, tmp_path: Path
) -> None:
    """The finding did not name the command."""
    here, there = group("k1", "a", {"orders": (JDBC, state)}), group("k2", "b", {"orders": (JDBC, "RUNNING")})
    app = moved(here, *events, group_id=group_id, state_dir=tmp_path)
    [finding] = findings_on_two_clusters(app, {"other": there.app()})
    assert (str(finding.code), command in finding.fix) == ("on_two_clusters", True), finding.fix
    [mirrored] = findings_on_two_clusters(there.app(), {"blue": app})
    assert ("-p blue" in mirrored.fix, "--to" in mirrored.fix) == (True, False)


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


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"connector.class": "FileStream", "file": "/data/orders", "topic": "orders"}, UNSURE),
        (
            {"connector.class": "FileStream", "file": "/x", "value.converter.schema.registry.url": "http://a.b.org"},
            UNSURE,
        ),
        ({"connector.class": "Postgres", "database.hostname": "db.example.org", "database.port": "5432"}, BOTH_RUN),
        ({"connector.class": "Postgres", "database.hostname": "postgres"}, UNSURE),
        ({"connector.class": "Mirror", "source.cluster.bootstrap.servers": "a.b.org:1,c.b.org:1"}, BOTH_RUN),
        ({"connector.class": "Mirror", "source.cluster.bootstrap.servers": "a.b.org:1,kafka:1"}, UNSURE),
    ],
)
def test_only_names_that_mean_the_same_everywhere_are_one_source(
    config: dict[str, str], expected: list[tuple[str, str, bool]]
) -> None:
    """Two FileStream sources with one config, on two machines, were said to read one source."""
    here, there = group("k1", "a", {"orders": (config, "RUNNING")}), group("k2", "b", {"orders": (config, "RUNNING")})
    assert told(found(here, there)) == expected


def test_a_group_that_was_not_named_may_be_the_very_same() -> None:
    """Without its group, the profile's workers were said to run the connector a second time: its own tasks."""
    here = group("k1", "a", {"orders": (JDBC, "RUNNING")})
    assert told(findings_on_two_clusters(here.app(), {"other": here.app(group_id=None)})) == UNSEEN
    assert told(findings_on_two_clusters(here.app(client=None), {"other": here.app(client=None)})) == UNSEEN
    assert told(findings_on_two_clusters(here.app(), {"other": here.app(group_id="typo")})) == UNSEEN


@pytest.mark.parametrize("state", ["RESTARTING", "UNASSIGNED"])
def test_a_task_that_starts_neither_reads_nor_rests_for_certain(state: str) -> None:
    here, there = group("k1", "a", {"orders": (JDBC, "RUNNING")}), group("k2", "b", {"orders": (JDBC, state)})
    assert told(found(here, there)) == UNSURE


def test_a_task_that_rest_shows_where_no_member_holds_it_is_not_known_to_run() -> None:
    """REST alone showed it: its worker had given it away."""
    here, there = group("k1", "a", {"orders": (JDBC, "RUNNING")}), group("k2", "b", {"orders": (JDBC, "RUNNING")})
    there.connect.modes["http://second:8083"] = "enabled"
    there.connect.connectors["orders"].tasks[0].url = "http://second:8083"
    assert told(found(here, there)) == UNSURE


def test_offsets_that_are_not_all_seen_do_not_prove_other_source_partitions() -> None:
    """The own topic of one could not be known, and both were taken for readers of different tables."""
    other = {**JDBC, "connection.url": "jdbc:postgresql://staging/orders", "offsets.storage.topic": "${file:/x:y}"}
    here, there = group("k1", "a", {"orders": (JDBC, "RUNNING")}), group("k2", "b", {"orders": (other, "RUNNING")})
    commit(here, "orders", "t")
    commit(there, "orders", "u")
    assert told(found(here, there)) == UNSURE


def test_thousands_of_connectors_are_compared_by_what_they_share() -> None:
    """Each was compared with each, source partition by source partition: minutes for two thousand."""
    entries = {f"c{number}": ConnectorEntry("source", {**JDBC, "topic.prefix": f"{number}-"}) for number in range(2000)}
    parts = {name: frozenset(f"{name}-{table}" for table in range(50)) for name in entries}
    began = time.process_time()
    pairs = list(pairs_of(entries, {f"x{name}": entry for name, entry in entries.items()}, parts, {}))
    assert len(pairs) == 2000
    assert time.process_time() - began < 5


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
