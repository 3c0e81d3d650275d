"""A broker whose disk fills up: doctor names it before it happens, and after; and nobody else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eosctl.checks.causes import KAFKA
from eosctl.checks.cluster import log_dir_findings
from eosctl.checks.standstill import standstill_findings
from eosctl.core.records import LogDir, Placement, TopicDescription
from eosctl.errors import UnreachableError
from eosctl.wire import error_codes
from tests.conftest import Invoke
from tests.fakes.config_world import ConfigWorld
from tests.fakes.doctor_scene import HEALTHY, cluster, doctor, found

GIB = 1 << 30
API = "DescribeLogDirs"
NEARLY_FULL = (KAFKA, "log_dir_nearly_full", "warning")
FULL = (KAFKA, "log_dir_full", "error")
FAILED = (KAFKA, "log_dir_failed", "error")


def disk(usable: int | None, total: int | None = 100 * GIB) -> LogDir:
    return LogDir("/kafka/data", total_bytes=total, usable_bytes=usable)


def filled(broker: int = 3, usable: int = GIB) -> ConfigWorld:
    """A healthy group of three brokers, one of which has so much room left of 100 GiB."""
    there = cluster()
    there.brokers.state.log_dirs[broker] = (disk(usable),)
    return there


def rows(invoke: Invoke, there: ConfigWorld) -> list[dict[str, Any]]:
    return [dict(row) for row in doctor(invoke, there, "-o", "json").json()["data"]["rows"]]


@pytest.mark.parametrize(
    ("log_dir", "code"),
    [
        (disk(50 * GIB), None),
        (disk(5 * GIB), None),
        (disk(5 * GIB - 1), "log_dir_nearly_full"),
        (disk(1 << 20), "log_dir_nearly_full"),
        (disk((1 << 20) - 1), "log_dir_full"),  # no room for a batch
        (disk(GIB // 10, GIB), None),  # a small disk is not nearly full for ever
        (disk(GIB // 100, GIB), "log_dir_nearly_full"),
        (disk(None, None), "log_dirs_unread"),
        (LogDir("/kafka/data", is_offline=True), "log_dir_failed"),
    ],
)
def test_which_log_directories_are_named(log_dir: LogDir, code: str | None) -> None:
    assert [each.code for each in log_dir_findings({1: (log_dir,)})] == ([code] if code else [])


def test_each_directory_of_each_broker_is_judged_for_itself() -> None:
    log_dirs = {2: (disk(50 * GIB), LogDir("/b", is_offline=True)), 1: (disk(0),)}
    told = log_dir_findings(log_dirs)
    assert [(each.evidence["broker"], each.evidence["log_dir"]) for each in told] == [
        (1, "/kafka/data"),
        (2, "/b"),
    ]


def test_a_healthy_cluster_is_asked_once_a_broker_and_nothing_is_said(invoke: Invoke) -> None:
    there = cluster()
    assert found(invoke, there, 0) == HEALTHY
    assert sorted(seen.node for seen in there.brokers.seen if seen.api == API) == [1, 2, 3]


def test_a_disk_that_fills_up_is_named_first_before_its_broker_dies_of_it(invoke: Invoke) -> None:
    """At 99 percent nothing was said: the broker died, and died again of the start that was advised."""
    there = filled()
    assert found(invoke, there, 0) == [NEARLY_FULL, *HEALTHY]
    assert doctor(invoke, there, "--strict").exit_code == 3
    first = rows(invoke, there)[0]
    assert first["subject"] == "broker 3"
    assert first["evidence"] == {
        "broker": 3,
        "log_dir": "/kafka/data",
        "usable_bytes": GIB,
        "total_bytes": 100 * GIB,
    }


def test_a_log_directory_that_a_broker_has_taken_out_of_use_is_an_error(invoke: Invoke) -> None:
    there = cluster()
    there.brokers.state.log_dirs[2] = (disk(50 * GIB), LogDir("/kafka/more", is_offline=True))
    assert found(invoke, there, 3) == [FAILED, *HEALTHY]
    assert rows(invoke, there)[0]["evidence"] == {"broker": 2, "log_dir": "/kafka/more"}


def test_of_a_broker_that_its_disk_has_ended_the_disk_is_thought_of(invoke: Invoke) -> None:
    there = filled()
    there.brokers.stop_broker(3, noticed=False)
    first = rows(invoke, there)[0]
    assert (first["code"], first["subject"]) == ("broker_unreachable", "broker 3")
    assert "full disk" in first["fix"]


def test_the_next_disk_to_fill_up_is_named_while_another_broker_is_down(invoke: Invoke) -> None:
    there = filled(broker=2)
    there.brokers.stop_broker(3, noticed=False)
    assert [(row["code"], row["subject"]) for row in rows(invoke, there) if row["check"] == KAFKA] == [
        ("broker_unreachable", "broker 3"),
        ("log_dir_nearly_full", "broker 2"),
    ]
    assert {seen.node for seen in there.brokers.seen if seen.api == API} == {1, 2}


def test_what_is_unknown_is_put_down_to_no_disk(invoke: Invoke) -> None:
    """A finding about a broker that answers had below it what could not be looked at for another reason."""
    there = filled()
    there.topics.fail_always("describe", UnreachableError("no answer"))
    told = rows(invoke, there)
    assert told[0]["code"] == "log_dir_nearly_full"
    assert "follows" not in told[0]["evidence"]
    assert {"config_topic", "not_checked"} <= {row["code"] for row in told}


def test_of_a_broker_that_ends_again_when_it_is_started_the_start_is_not_what_is_advised() -> None:
    """ "Start broker 3." was advised of one whose full disk ended it again at once."""
    gone = Placement(0, None, (3,), (3,), (3,))
    below = Placement(0, 1, (1, 3), (1,), (3,))
    topics = [
        TopicDescription("a", "id-a", 1, 1, {}, (gone,)),
        TopicDescription("b", "id-b", 1, 2, {"min.insync.replicas": "2"}, (below,)),
    ]
    told = list(standstill_findings(topics))
    assert [each.code for each in told] == ["broker_down", "partition_without_leader", "below_min_isr"]
    assert all("full disk" in each.fix and "start" not in each.fix.partition("full disk")[0].lower() for each in told)


def denied(there: ConfigWorld) -> None:
    there.brokers.fail_next(API, *[error_codes.CLUSTER_AUTHORIZATION_FAILED] * 3)


def refused(there: ConfigWorld) -> None:
    there.brokers.fail_next(API, *[error_codes.UNKNOWN_SERVER_ERROR] * 3)


def denied_by_an_old_broker(there: ConfigWorld) -> None:
    """An answer without any directory."""
    there.brokers.versions[API] = (0, 2)
    denied(there)


def not_offered(there: ConfigWorld) -> None:
    there.brokers.versions[API] = (-1, -1)


def cut(there: ConfigWorld) -> None:
    there.brokers.lose_answers(API, 100)


def without_sizes(there: ConfigWorld) -> None:
    """Brokers before 3.3."""
    there.brokers.versions[API] = (0, 3)


def broken(there: ConfigWorld) -> None:
    there.brokers.calls.fail_always("log_dirs", UnreachableError("no broker"))


@pytest.mark.parametrize(
    ("hide", "severity", "exit_code"),
    [
        (denied, "warning", 7),
        (refused, "warning", 7),
        (denied_by_an_old_broker, "warning", 7),
        (cut, "warning", 7),
        (broken, "warning", 7),
        (not_offered, "info", 0),  # nobody can be asked for more
        (without_sizes, "info", 0),
    ],
)
def test_disks_that_are_not_reported_are_not_counted_as_healthy(
    invoke: Invoke, hide: Callable[[ConfigWorld], None], severity: str, exit_code: int
) -> None:
    """A principal that may not DESCRIBE the cluster read that nothing was wrong."""
    there = filled()
    hide(there)
    assert found(invoke, there, exit_code) in (
        [(KAFKA, "log_dirs_unread", severity), *HEALTHY],
        [*HEALTHY, (KAFKA, "log_dirs_unread", severity)],
    )


def test_an_old_broker_reports_a_directory_that_failed(invoke: Invoke) -> None:
    there = cluster()
    there.brokers.versions[API] = (0, 1)
    there.brokers.state.log_dirs[1] = (LogDir("/kafka/data", is_offline=True),)
    assert FAILED in found(invoke, there, 3)


def test_one_broker_that_refuses_hides_no_other(invoke: Invoke) -> None:
    there = cluster()
    there.brokers.state.log_dirs = {number: (disk(0),) for number in (1, 2, 3)}
    there.brokers.fail_next(API, error_codes.CLUSTER_AUTHORIZATION_FAILED)
    unread = (KAFKA, "log_dirs_unread", "warning")
    assert found(invoke, there, 3) == [FULL, FULL, unread, *HEALTHY]
