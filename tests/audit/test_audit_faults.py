"""`eosctl audit` of what is not there, not allowed, not answered in time, or cut off."""

from __future__ import annotations

import pytest

from eosctl.errors import DeadlineError, EosctlError, UnauthorizedError, UnreachableError
from tests.audit.happenings import (
    connector,
    honest,
    numbered,
    plain_writes,
)
from tests.audit.log_scene import OUT, LogScene, run_on
from tests.conftest import Invoke
from tests.fakes.faults import Call


def test_names_that_are_none(invoke: Invoke) -> None:
    scene = LogScene()
    honest(scene)
    run = run_on(scene, invoke)
    for words in (("--connector", "nobody"), ("--topic", "nowhere"), ("--offsets-topic", "nowhere")):
        done = run(*words)
        assert (done.exit_code, done.stdout) == (1, ""), words


def test_a_sink_is_refused(invoke: Invoke) -> None:
    scene = LogScene()
    scene.connect.add("s", {"connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector", "topics": OUT})
    assert run_on(scene, invoke)("--connector", "s").exit_code == 6


def test_without_the_right_to_read(invoke: Invoke) -> None:
    scene = LogScene()
    honest(scene)
    scene.batches.fail_next("plan", UnauthorizedError(f"not allowed to DESCRIBE topic {OUT}"))
    assert run_on(scene, invoke)().exit_code == 5


def test_without_the_right_to_list_ids(invoke: Invoke) -> None:
    """Whose the producers are is known by the offsets that they committed; that coordinators say nothing is said."""
    scene = LogScene()
    honest(scene)
    scene.brokers.calls.fail_always("list_transactions", UnauthorizedError("not allowed"))
    done = run_on(scene, invoke)("-o", "json")
    assert connector(done)["producers"][0]["identified_by"] == "offsets_record"
    assert done.exit_code == 0


def test_ctrl_c_reports_what_was_read(invoke: Invoke) -> None:
    scene = LogScene()
    honest(scene)
    plain_writes(scene)
    scene.batches.fail_next("batch", KeyboardInterrupt(), skip=12)
    done = run_on(scene, invoke)("-o", "json")
    assert (done.exit_code, done.json()["errors"][-1]["code"]) == (130, "interrupted")
    assert (connector(done)["verdict"], connector(done)["why"]) == ("unproven", "Not proven: the reading ended early.")
    assert connector(done)["records"] > 0


def test_the_end_of_the_time_reports_what_was_read(invoke: Invoke) -> None:
    scene = LogScene()
    honest(scene)
    scene.batches.fail_next("batch", DeadlineError("timed out after 60 s while reading"), skip=12)
    done = run_on(scene, invoke)("-o", "json")
    assert (done.exit_code, done.json()["errors"][-1]["code"]) == (4, "timed_out")
    assert connector(done)["verdict"] == "unproven"


def test_a_partition_without_a_leader_leaves_it_unproven(invoke: Invoke) -> None:
    scene = LogScene()
    honest(scene)
    scene.state.leaderless.add((OUT, 1))
    done = run_on(scene, invoke)("-o", "json")
    assert (done.exit_code, connector(done)["verdict"]) == (7, "unproven")
    assert "has no leader" in connector(done)["why"]


def test_brokers_of_its_own_that_cannot_be_reached_are_refused(invoke: Invoke) -> None:
    scene = LogScene(config={
        "producer.override.bootstrap.servers": "elsewhere:9092",
        "producer.override.sasl.jaas.config": "${file:/secrets:jaas}",
    })  # fmt: skip
    honest(scene)
    done = run_on(scene, invoke)()
    assert (done.exit_code, "only its worker can resolve" in done.stderr) == (6, True)


def test_an_audit_that_takes_longer_than_the_timeout_is_told_to_its_end(invoke: Invoke) -> None:
    """The timeout is for what gives no answer: after a minute of good reading nothing at all was printed."""
    scene = LogScene()
    numbered(scene, 1, 2, 3)
    scene.batches.before("batch", lambda _call: scene.time.pass_until(scene.time.now_s + 20.0))
    done = run_on(scene, invoke)("-o", "json", "--unique", "id", "--timeout", "30")
    assert (connector(done)["verdict"], done.exit_code, done.json()["errors"]) == ("exactly_once", 0, [])
    assert connector(done)["producers"][0]["identified_by"] == "coordinator"
    assert done.json()["target"]["kafka_cluster_id"] == "fake-cluster-id"


@pytest.mark.parametrize(
    ("error", "exit_code", "why"),
    [
        (DeadlineError("timed out after 60 s while reading"), 4, "the reading ended early"),
        (UnreachableError("nobody answers"), 7, "the records were not read: nobody answers"),
    ],
)
def test_records_that_can_not_be_read_do_not_lose_the_rest(
    invoke: Invoke, error: EosctlError, exit_code: int, why: str
) -> None:
    """All that the batches had shown until then was lost."""
    scene = LogScene()
    numbered(scene, 1, 2)

    def refuse(call: Call) -> None:
        if call.what[0] == OUT:
            raise error

    scene.topics.before("read", refuse)
    done = run_on(scene, invoke)("-o", "json", "--unique", "id")
    assert (connector(done)["verdict"], connector(done)["records"], done.exit_code) == ("unproven", 2, exit_code)
    assert connector(done)["why"] == f"Not proven: {why}."
