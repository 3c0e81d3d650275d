"""A roll on kubernetes that was cut off is taken up again: from the journal, with whoever is there."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from eosctl.core.workers.modes import Mode
from eosctl.deadline import Event
from eosctl.errors import ExitCode, RefusedError
from eosctl.upgrade.roll.roll import apply_roll
from tests.fakes.faults import Call, KilledError
from tests.fakes.kubectl import Cluster
from tests.upgrade.drivers.kubernetes_stage import ON_DELETE, Pods, deleted, pods, prepare, roll


def test_a_run_that_was_cut_off_deletes_no_pod_twice(cluster: Cluster, tmp_path: Path) -> None:
    there = pods(cluster, 3, **ON_DELETE)

    def die(_url: str) -> None:
        raise KilledError

    there.after_start.append(die)
    with pytest.raises(KilledError):
        roll(there, tmp_path / "state")
    there.after_start.clear()
    assert deleted(cluster) == ["pod/connect-2"]
    report = roll(there, tmp_path / "state", None, resume=True)
    assert report.exit_code is ExitCode.OK, report.problems
    assert deleted(cluster)[:3] == ["pod/connect-2", "pod/connect-1", "pod/connect-0"]
    assert len(deleted(cluster)) == 6


@pytest.mark.parametrize("count", [1, 2])
def test_what_is_to_do_follows_from_the_journal_when_nobody_is_there(
    cluster: Cluster, tmp_path: Path, count: int
) -> None:
    """With no worker in the group `--resume` dropped the pass `enabled`, and called the upgrade finished."""
    there = pods(cluster, count)
    to_come = [KilledError()]

    def die(_call: Call) -> None:
        if to_come and not there.workers:
            raise to_come.pop()

    there.held = True
    there.connect.after("stop_worker", die)
    with pytest.raises(KilledError):
        roll(there, tmp_path / "state")
    app, prepared = prepare(there, tmp_path / "state", None, resume=True)
    assert not there.workers
    assert {mode for mode, _worker in prepared.steps()} == {Mode.PREPARING, Mode.ENABLED}
    there.held = False
    report = apply_roll(app, prepared)
    assert report.exit_code is ExitCode.OK, report.problems
    assert set(there.workers.values()) == {"enabled"}
    assert len(there.workers) == count


def test_a_run_is_resumed_while_pods_are_being_restarted(cluster: Cluster, tmp_path: Path) -> None:
    """A worker that was a member and did not answer yet made `same_kafka_cluster` unknown: --resume was refused."""
    there = pods(cluster, 1)
    url = "http://connect-0:8083"

    def die(_url: str) -> None:
        raise KilledError

    there.after_start.append(die)
    with pytest.raises(KilledError):
        roll(there, tmp_path / "state")
    there.after_start.clear()
    there.connect.hidden.add(url)
    app, prepared = prepare(there, tmp_path / "state", None, resume=True)
    assert list(there.workers) == [url]
    assert "same_kafka_cluster" in {gate.id for gate in prepared.gates if gate.stops_apply}
    assert prepared.blocking == ()
    there.connect.hidden.clear()
    report = apply_roll(app, prepared)
    assert report.exit_code is ExitCode.OK, report.problems
    assert there.workers == {url: "enabled"}


def run_until(there: Pods, state: Path, words: str) -> None:
    """A roll whose process is killed when a message begins with `words`."""

    def die(event: Event) -> None:
        if event.message.startswith(words):
            raise KilledError

    app, prepared = prepare(there, state)
    with pytest.raises(KilledError):
        apply_roll(replace(app, on_event=die), prepared)


def test_pods_that_are_new_already_are_not_restarted_again(cluster: Cluster, tmp_path: Path) -> None:
    """eosctl was killed while the controller was at work, and the same mode was then rolled out once more."""
    there = pods(cluster, 2)

    run_until(there, tmp_path / "state", "pod connect-0: Ready, revision r2")
    report = roll(there, tmp_path / "state", None, resume=True)
    assert report.exit_code is ExitCode.OK, report.problems
    assert [words[:2] for words in cluster.calls()] == [["set", "env"]] * 2, "one for each pass, and no restart"
    assert {pod["starts"] for pod in cluster.pods().values()} == {3}
    assert "the pods were made as preparing before this run" in str(report.rows[0].detail)


def test_between_the_passes_with_nobody_there(cluster: Cluster, tmp_path: Path) -> None:
    """Nobody was there to be brought to enabled, and so it was finished."""
    there = pods(cluster, 1)

    run_until(there, tmp_path / "state", "pass enabled")
    there.held = True
    there.stop("http://connect-0:8083")
    there.seen.clear()
    app, prepared = prepare(there, tmp_path / "state", None, resume=True)
    assert prepared.steps() == [(Mode.ENABLED, "pod connect-0")]
    there.held = False
    there.follow()
    there.settle()
    report = apply_roll(app, prepared)
    assert report.exit_code is ExitCode.OK, report.problems
    assert there.workers == {"http://connect-0:8083": "enabled"}


def test_an_upgrade_is_resumed_where_it_was_begun(cluster: Cluster, tmp_path: Path) -> None:
    """`--resume` with another --workload would have gone on with the pods of that one."""
    there = pods(cluster, 1)
    cluster.add("statefulset/other", pods=1)
    there.after_start.append(lambda url: there.stop(url))
    assert roll(there, tmp_path / "state").exit_code is ExitCode.PARTIAL
    with pytest.raises(RefusedError, match="was begun with statefulset/connect in the context's namespace of context"):
        prepare(there, tmp_path / "state", None, resume=True, workloads=["statefulset/other"])
