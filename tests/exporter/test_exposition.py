"""The metrics as Prometheus reads them: names, labels, what is bounded, what vanishes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_plain

from eosctl.codes import Code
from eosctl.collect.facts import (
    ConnectorFacts,
    DoctorFacts,
    GroupFacts,
    KafkaFacts,
    LsoFacts,
    OffsetFacts,
    OwnedTransaction,
    TopicFacts,
    TransactionFacts,
)
from eosctl.collect.overview import Collected, Overview
from eosctl.core.findings import INFO, WARNING, Finding
from eosctl.core.ids import Owner, TransactionalId
from eosctl.core.records import LogDir
from eosctl.exporter.metrics import METRICS, Metric, expose, metric
from eosctl.observation.connectors import codes
from tests.collect.scene import app_of, collector_of, group

NOW_MS = 1_000_000


def overview_of(*facts: object, facts_ms: int = NOW_MS, **more: Any) -> Overview:
    collected = {
        f"source-{number}": Collected(f"source-{number}", 30.0, 20.0, facts=each, facts_ms=facts_ms, looks=1, **more)
        for number, each in enumerate(facts)
    }
    return Overview(NOW_MS, 0, 1, collected)


def samples(overview: Overview, name: str, *, top: int = 50) -> dict[tuple[str, ...], float]:
    """Values by the values of the labels, as a scraper reads them."""
    body, _type = expose(lambda: overview, "", top=top)
    families = read_plain(body.decode())
    return {
        tuple(sample.labels[label] for label in metric(name).labels): sample.value
        for family in families
        for sample in family.samples
        if sample.name == name
    }


@pytest.mark.parametrize("each", METRICS, ids=lambda each: each.name)
def test_names_follow_the_conventions(each: Metric) -> None:
    assert re.fullmatch(r"eosctl_[a-z_]+", each.name)
    assert each.name.endswith("_total") == (each.type == "counter")
    assert each.name.endswith("_info") == (each.type == "info")
    assert each.name.endswith("_seconds") == (each.unit == "seconds")
    assert each.name.endswith("_bytes") == (each.unit == "bytes")
    assert each.help.rstrip("`").endswith(".")
    assert all(re.fullmatch(r"[a-z_]+", label) for label in each.labels)


def test_a_name_stands_once() -> None:
    assert len({each.name for each in METRICS}) == len(METRICS)


def test_both_formats_of_a_real_look_can_be_read(tmp_path: Path) -> None:
    collector = collector_of(app_of(group(), tmp_path))
    for source in collector.sources:
        collector.look(source)
    overview = collector.overview()
    plain, _type = expose(lambda: overview, "")
    openmetrics, _type = expose(lambda: overview, "application/openmetrics-text; version=1.0.0")
    names = {sample.name for family in read_plain(plain.decode()) for sample in family.samples}
    families = read_openmetrics(openmetrics.decode())  # type: ignore[no-untyped-call]  # it has no types
    again = {sample.name for family in families for sample in family.samples}
    assert names == again >= {"eosctl_up", "eosctl_findings", "eosctl_workers", "eosctl_topic_lso_distance"}
    assert names <= {each.name for each in METRICS} | {"eosctl_build_info"}


def test_only_ends_that_are_decided_have_series() -> None:
    ending = replace(transaction(1), ending_since_ms=NOW_MS - 90_000)
    found = samples(overview_of(TransactionFacts((transaction(2), ending))), "eosctl_transaction_ending_seconds")
    assert found == {("task", "c1", "1", "g-c1-0"): 90.0}


def test_the_fullest_disks_have_series_and_what_is_not_known_has_none() -> None:
    dirs = {
        1: (LogDir("/a", total_bytes=100, usable_bytes=50), LogDir("/b", is_offline=True)),
        2: (LogDir("/a", total_bytes=1000, usable_bytes=10), LogDir("/old")),
    }
    facts = KafkaFacts("k", log_dirs=dirs)
    names = ("eosctl_log_dir_usable_bytes", "eosctl_log_dir_total_bytes", "eosctl_log_dir_failed")
    room, size, failed = (samples(overview_of(facts), name) for name in names)
    assert room == {("1", "/a"): 50, ("2", "/a"): 10}
    assert size == {("1", "/a"): 100, ("2", "/a"): 1000}
    assert failed == {("1", "/b"): 1, ("2", "/a"): 0, ("1", "/a"): 0, ("2", "/old"): 0}
    assert list(samples(overview_of(facts), names[2], top=2)) == [("1", "/b"), ("2", "/a")]


def transaction(number: int, *, kind: Any = "task") -> OwnedTransaction:
    owner = Owner(kind, f"c{number}", number) if kind == "task" else Owner(kind)
    return OwnedTransaction(TransactionalId(f"g-c{number}-0"), owner, "Ongoing", number * 1000, 60_000, number)


def test_transactions_are_bounded() -> None:
    """Those nearest to their timeout have series of their own; the oldest of the rest stands for all of them."""
    facts = TransactionFacts(tuple(transaction(number) for number in range(10)))
    found = samples(overview_of(facts), "eosctl_transaction_open_seconds", top=2)
    assert found == {
        ("task", "c0", "0", "g-c0-0"): 1000.0,
        ("task", "c1", "1", "g-c1-0"): 999.0,
        ("other",) * 4: 998.0,
    }
    assert samples(overview_of(facts), "eosctl_transactions_open")["task",] == 10


def test_long_transactions_of_others_hide_no_task_that_is_near_its_timeout() -> None:
    jobs = [
        OwnedTransaction(TransactionalId(f"flink-{n}"), Owner("other"), "Ongoing", 0, 7_200_000, n) for n in range(5)
    ]
    task = OwnedTransaction(TransactionalId("g-c-0"), Owner("task", "c", 0), "Ongoing", NOW_MS - 50_000, 60_000, 9)
    found = samples(overview_of(TransactionFacts((*jobs, task))), "eosctl_transaction_open_seconds", top=2)
    assert ("task", "c", "0", "g-c-0") in found
    assert found[("other",) * 4] == 1000.0


def test_a_counter_never_goes_and_comes_back() -> None:
    """Not with `--top`, and not by who has most: a series that begins with a great value looks like many aborts."""
    facts = TransactionFacts((), {"first": 1, "a": 5, "b": 7, "": 2})
    found = samples(overview_of(facts), "eosctl_transactions_aborted_total", top=1)
    assert found == {("first",): 1.0, ("a",): 5.0, ("b",): 7.0, ("other",): 2.0}


def test_the_age_of_offsets_and_the_running_tasks_are_of_the_same_connectors() -> None:
    """Connectors that are stopped, or have more tasks, take the place of none whose offsets stand still."""
    connectors = [ConnectorFacts(f"big-{n}", "RUNNING", dict.fromkeys(range(9), "RUNNING")) for n in range(3)] + [
        ConnectorFacts(f"stopped-{n}", "STOPPED", {}) for n in range(3)
    ]
    connectors += [
        ConnectorFacts("still", "RUNNING", {0: "RUNNING"}),
        ConnectorFacts("next", "RUNNING", {0: "RUNNING"}),
    ]
    newest = {"still": NOW_MS - 9_000, "next": NOW_MS - 8_000}
    newest |= {f"big-{n}": NOW_MS - 1_000 for n in range(3)} | {f"stopped-{n}": 0 for n in range(3)}
    overview = overview_of(GroupFacts("g", "Stable", (), tuple(connectors)), OffsetFacts(newest))
    ages = samples(overview, "eosctl_source_offset_age_seconds", top=1)
    assert ages == {("still",): 9.0, ("other",): 8.0}
    running = samples(overview, "eosctl_connector_tasks_running", top=1)
    assert running == {("still",): 1.0, ("other",): 28.0}


def test_a_connector_that_is_called_other_is_no_second_series() -> None:
    facts = TransactionFacts((), {"other": 3, "a": 5, "": 1})
    assert samples(overview_of(facts), "eosctl_transactions_aborted_total") == {("a",): 5.0, ("other",): 3.0}


def test_what_is_gone_has_no_series() -> None:
    orders = GroupFacts("g", "Stable", (), (ConnectorFacts("orders", "RUNNING", {0: "RUNNING"}),))
    nobody = GroupFacts("g", "Stable", (), ())
    ages = OffsetFacts({"orders": NOW_MS - 5000, "gone": 0})
    name = "eosctl_source_offset_age_seconds"
    assert samples(overview_of(orders, ages), name) == {("orders",): 5.0}
    assert samples(overview_of(nobody, ages), name) == {}
    assert samples(overview_of(orders), "eosctl_connector_tasks_running") == {("orders",): 1.0}
    assert samples(overview_of(orders, facts_ms=NOW_MS - 200_000), "eosctl_connector_tasks_running") == {}


def test_facts_that_can_not_be_known_have_no_series() -> None:
    """A group whose workers do not answer: nothing is known of tasks, and no zero is made up."""
    unseen = overview_of(GroupFacts("g", "Stable", (), None))
    assert samples(unseen, "eosctl_tasks_without_transaction") == {}
    assert samples(Overview(NOW_MS, 0), "eosctl_up") == {}


def test_a_look_that_is_overdue_is_an_error() -> None:
    late = Collected("kafka", 30.0, 20.0, looks=1, looking_since_ms=NOW_MS - 60_000)
    overview = Overview(NOW_MS, 0, 1, {"kafka": late})
    assert samples(overview, "eosctl_up") == {(): 0.0}
    assert samples(overview, "eosctl_collection_error") == {("kafka", "timed_out"): 1.0}


def test_distances_of_the_rest_are_summed() -> None:
    topics = tuple(TopicFacts(f"t{number}", "output", number, 1, NOW_MS - 1000 * number) for number in range(5))
    found = overview_of(LsoFacts(topics))
    assert samples(found, "eosctl_topic_lso_distance", top=1) == {("t4", "output"): 4.0, ("other", "other"): 6.0}
    assert samples(found, "eosctl_topic_lso_stuck_seconds", top=1) == {("t4", "output"): 4.0, ("other", "other"): 3.0}


def test_a_name_that_is_no_utf8_spoils_nothing() -> None:
    """Anybody may write such a key into an offsets topic: a scrape has it escaped, and everything else."""
    overview = overview_of(OffsetFacts({"\ud800x": NOW_MS - 5_000, "orders": NOW_MS - 1_000}))
    assert samples(overview, "eosctl_source_offset_age_seconds") == {("\\ud800x",): 5.0, ("orders",): 1.0}


def test_what_could_not_be_seen_is_counted() -> None:
    """A coordinator, a partition, a part of the group: no zero of another metric says so."""
    facts = (
        TransactionFacts((), unasked=2),
        LsoFacts((TopicFacts("t", "output", 0, 0, unasked=3),), unseen=1),
        GroupFacts("g", "Stable", (), unseen={"topics": "no right"}),
        DoctorFacts((), {"acls": "not_authorized", "offsets": "too_large"}),
        OffsetFacts({}),
    )
    found = samples(overview_of(*facts), "eosctl_collection_unseen")
    assert found == {("source-0",): 2.0, ("source-1",): 4.0, ("source-2",): 1.0, ("source-3",): 1.0}
    assert samples(overview_of(*facts, facts_ms=0), "eosctl_collection_unseen") == {}


def test_ids_of_others_make_no_series_each() -> None:
    """Fifty subtasks with a new id at each checkpoint made 3,000 series an hour of each of two metrics."""
    seen = set[tuple[str, ...]]()
    for minute in range(60):
        opened = tuple(
            OwnedTransaction(
                TransactionalId(f"sink-{task}-{minute}"), Owner("other"), "Ongoing", NOW_MS - task, 900_000, 1,
                prefix="sink",
            )
            for task in range(50)
        )  # fmt: skip
        overview = overview_of(TransactionFacts((*opened, transaction(999))))
        found = samples(overview, "eosctl_transaction_open_seconds")
        assert found["other", "", "", "sink*"] == 0.049, "the one nearest to its timeout"
        assert samples(overview, "eosctl_transaction_timeout_seconds").keys() == found.keys()
        seen |= found.keys()
    assert seen == {("other", "", "", "sink*"), ("task", "c999", "999", "g-c999-0")}


def test_counters_do_not_go_while_facts_are_too_old() -> None:
    """They came back with the sum of weeks, and an alert took it for aborts."""
    old = overview_of(TransactionFacts((), {"a": 5, "": 2}), OffsetFacts({}, 9, 1), facts_ms=NOW_MS - 900_000)
    assert samples(old, "eosctl_transactions_aborted_total") == {("a",): 5.0, ("other",): 2.0}
    assert samples(old, "eosctl_offset_records_total") == {(): 9.0}
    assert samples(old, "eosctl_offset_topic_restarts_total") == {(): 1.0}
    assert samples(old, "eosctl_transactions_open") == {}


def test_a_counter_is_there_before_it_counts() -> None:
    """Else no rate sees the first abort."""
    orders = GroupFacts(
        "g", "Stable", (), (ConnectorFacts("orders", "RUNNING", {}), ConnectorFacts("a", "STOPPED", {}))
    )
    found = samples(overview_of(TransactionFacts((), {"a": 5}), orders), "eosctl_transactions_aborted_total")
    assert found == {("a",): 5.0, ("orders",): 0.0, ("other",): 0.0}


def test_facts_that_are_too_old_are_a_failure() -> None:
    """Nobody looks any more: `eosctl_up` was 1 for ever."""
    old = Collected("kafka", 30.0, 20.0, facts=KafkaFacts("k"), facts_ms=NOW_MS - 900_000, looks=1)
    overview = Overview(NOW_MS, 0, 1, {"kafka": old})
    assert samples(overview, "eosctl_up") == {(): 0.0}
    assert samples(overview, "eosctl_collection_success") == {("kafka",): 0.0}
    assert samples(overview, "eosctl_collection_error") == {("kafka", "stale"): 1.0}


def test_the_group_is_there_while_nothing_answers() -> None:
    """A dashboard chooses exporters by it: this one dropped out just when its group failed."""
    name = "eosctl_cluster_info"
    assert samples(Overview(NOW_MS, 0, group_id="g"), name) == {("", "g"): 1.0}
    seen = replace(overview_of(KafkaFacts("k"), facts_ms=0), group_id="g")
    assert samples(seen, name) == {("k", "g"): 1.0}


def test_findings_that_leave_a_doubt_are_unseen() -> None:
    """One that says only that nobody asked is none."""

    def doubt(code: Code, severity: str = WARNING) -> Finding:
        return Finding(code, severity, "orders", "", "", certain=False)

    found = [doubt(codes.TASK_AUDIT_UNKNOWN), doubt(codes.SUPPORT_UNKNOWN, INFO)]
    facts = DoctorFacts(tuple(found), {"acls": "not_authorized"})
    assert samples(overview_of(facts), "eosctl_collection_unseen") == {("source-0",): 2.0}
    assert samples(overview_of(KafkaFacts("k", (2, 3))), "eosctl_collection_unseen") == {("source-0",): 2.0}
