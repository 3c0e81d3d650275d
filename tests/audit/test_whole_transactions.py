"""A transaction is judged when it is whole: its parts in all partitions, its offsets, and who else commits these."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eosctl.audit.log.ledger import MOST_KEPT, Ledger
from eosctl.audit.log.segments import Part
from eosctl.core.ids import ProducerId
from tests.audit.happenings import a_marker_that_is_missing, codes, connector
from tests.audit.log_scene import KEY, OTHER_OUT, OUT, LogScene, Task, run_on
from tests.audit.test_segments import marker
from tests.conftest import Invoke
from tests.fakes.world import OFFSETS

EXACT, WRONG, UNPROVEN = "exactly_once", "not_exactly_once", "unproven"
SHARED = b'["c",{"task":"1"}]'


def spread(scene: LogScene) -> Task:
    """A transaction with parts in both output partitions and the offsets topic, which is about to be committed."""
    task = scene.task()
    task.commit()
    task.write(OUT, b"k", b"x", partition=1)
    task.write(OUT, b"k", b"x", partition=0)
    task.write(OFFSETS, KEY, b'{"n":2}')
    return task


def output_part_aborted(scene: LogScene) -> None:
    """An administrator aborted its part in one partition; the coordinator committed the others."""
    task = spread(scene)
    epoch = task.epoch
    scene.end(task, commit=True, but=(OUT, 1))
    scene.state.log(OUT, 1).mark((task.producer_id, epoch), commit=False)
    task.commit()


def only_output_part_aborted(scene: LogScene) -> None:
    task = scene.task()
    task.commit()
    epoch = task.epoch
    task.write(OUT, b"k", b"x", partition=1)
    task.write(OFFSETS, KEY, b'{"n":2}')
    scene.end(task, commit=True, but=(OUT, 1))
    scene.state.log(OUT, 1).mark((task.producer_id, epoch + 1), commit=False)
    task.commit()


def offsets_part_aborted(scene: LogScene) -> None:
    task = spread(scene)
    epoch = task.epoch
    scene.end(task, commit=True, but=(OFFSETS, 0))
    scene.state.log(OFFSETS, 0).mark((task.producer_id, epoch), commit=False)


def offsets_part_without_a_marker(scene: LogScene) -> None:
    """Its offset is not committed, and its records are: a restart reads them again."""
    scene.end(spread(scene), commit=True, but=(OFFSETS, 0))


def one_of_two_offsets_parts_aborted(scene: LogScene) -> None:
    scene.topics.add_topic(OFFSETS, 2, {"cleanup.policy": "delete"})
    task = scene.task()
    task.commit()
    epoch = task.epoch
    task.write(OUT, b"k", b"x")
    task.write(OFFSETS, KEY, b'{"n":2}')
    task.write(OFFSETS, SHARED, b'{"n":2}', partition=1)
    scene.end(task, commit=True, but=(OFFSETS, 1))
    scene.state.log(OFFSETS, 1).mark((task.producer_id, epoch), commit=False)


def markers_never_written(scene: LogScene) -> None:
    """The coordinator answered that it was committed, and wrote no marker; the next transaction's end both."""
    task = scene.task()
    task.commit(b"a")
    task.write(OUT, b"k", b"b")
    task.write(OFFSETS, KEY, b'{"n":2}')
    known = scene.state.transactions[task.transactional_id]
    known.partitions.clear()
    task.epoch += 1
    known.state, known.producer_epoch = "CompleteCommit", task.epoch
    task.commit(b"c")


def markers_never_written_then_an_abort(scene: LogScene) -> None:
    """The next transaction was aborted, and the one before with it in one partition, but not where its offset is."""
    task = spread(scene)
    scene.end(task, commit=True, but=(OUT, 1))
    task.write(OUT, b"k", b"y", partition=1)
    task.end(commit=False)


@pytest.mark.parametrize(
    ("happens", "found", "verdict"),
    [
        (output_part_aborted, {"transaction_torn"}, WRONG),
        (only_output_part_aborted, {"transaction_torn"}, WRONG),
        (offsets_part_aborted, {"transaction_torn"}, WRONG),
        (offsets_part_without_a_marker, {"commit_markers_missing"}, WRONG),
        (one_of_two_offsets_parts_aborted, {"transaction_torn"}, WRONG),
        (markers_never_written, {"commit_markers_missing"}, EXACT),
        (markers_never_written_then_an_abort, {"commit_markers_missing", "transaction_torn"}, WRONG),
    ],
)
def test_parts_with_different_ends(
    invoke: Invoke, happens: Callable[[LogScene], None], found: set[str], verdict: str
) -> None:
    """One part spoke for all: each of these was exactly_once."""
    scene = LogScene()
    happens(scene)
    done = run_on(scene, invoke)("-o", "json")
    assert (codes(done) - {"transaction_aborted"}, connector(done)["verdict"]) == (found, verdict)


def test_a_marker_that_was_never_written_accuses_nobody_else(invoke: Invoke) -> None:
    """The next transaction was said to have no offset."""
    scene = LogScene()
    markers_never_written(scene)
    rows = run_on(scene, invoke)("-o", "json").json()["data"]["rows"]
    assert {(row["code"], row["severity"], row["topic"]) for row in rows} == {
        ("commit_markers_missing", "warning", OUT),
        ("commit_markers_missing", "warning", OFFSETS),
    }


@pytest.mark.parametrize("late", [0, 50])
def test_before_epochs_of_their_own_a_part_without_a_marker_is_not_open(invoke: Invoke, late: int) -> None:
    """A producer begins no transaction before the last one has ended."""
    scene = LogScene(bumps=False)
    a_marker_that_is_missing(scene)
    known = scene.state.transactions["g-c-0"]
    task = Task(scene, "g-c-0", known.producer_id, known.producer_epoch)
    for _ in range(late):
        task.commit()
    done = run_on(scene, invoke)("-o", "json")
    assert (codes(done), connector(done)["verdict"]) == (set(), UNPROVEN)


def test_before_epochs_of_their_own_a_commit_behind_the_abort_shows_that_it_is_torn(invoke: Invoke) -> None:
    """The part was aborted while the transaction was open: its coordinator's marker came later."""
    scene = LogScene(bumps=False)
    task = spread(scene)
    scene.state.log(OUT, 1).mark((task.producer_id, task.epoch), commit=False)
    task.end()
    task.commit()
    done = run_on(scene, invoke)("-o", "json")
    assert (codes(done), connector(done)["verdict"]) == ({"transaction_torn"}, WRONG)


def test_before_epochs_of_their_own_an_aborted_part_may_be_torn(invoke: Invoke) -> None:
    scene = LogScene(bumps=False)
    output_part_aborted(scene)
    done = run_on(scene, invoke)("-o", "json")
    assert (codes(done), connector(done)["verdict"]) == ({"transaction_aborted"}, UNPROVEN)


# -- offsets without records


def truncated(scene: LogScene) -> None:
    """An unclean leader election lost the records of one transaction, and its marker."""
    task = scene.task()
    task.commit()
    log = scene.state.log(OUT, 0)
    before = (list(log.batches), list(log.records), log.end)
    task.commit(offset=b'{"n":2}')
    log.batches, log.records, log.end = before
    task.commit(offset=b'{"n":3}')


def truncated_before_the_marker(scene: LogScene) -> None:
    task = scene.task()
    task.commit()
    task.write(OFFSETS, KEY, b'{"n":2}')
    scene.state.transactions[task.transactional_id].partitions.add((OUT, 0))
    task.end()
    task.commit(offset=b'{"n":3}')


def output_topic_made_again(scene: LogScene) -> None:
    task = scene.task()
    for _ in range(3):
        task.commit()
    del scene.topics.topics[OUT]
    scene.topics.add_topic(OUT, 2, {"cleanup.policy": "delete"})
    for _ in range(3):
        task.commit()


def another_topic(scene: LogScene) -> None:
    """A transform routes to a topic that Connect does not list any more."""
    task = scene.task()
    task.commit()
    task.commit(topic=OTHER_OUT)
    scene.plain(OTHER_OUT, b"k", b"plain")


def last_records_lost(scene: LogScene) -> None:
    task = scene.task()
    task.commit()
    task.write(OFFSETS, KEY, b'{"n":2}')
    task.end()


@pytest.mark.parametrize(
    ("happens", "bumps", "found", "verdict"),
    [
        (truncated, True, set(), UNPROVEN),
        (truncated, False, set(), UNPROVEN),
        (truncated_before_the_marker, True, {"offsets_without_records"}, WRONG),
        (output_topic_made_again, True, set(), UNPROVEN),
        (another_topic, True, set(), UNPROVEN),
        (last_records_lost, True, set(), UNPROVEN),
    ],
)
def test_offsets_whose_records_are_nowhere(
    invoke: Invoke, happens: Callable[[LogScene], None], bumps: bool, found: set[str], verdict: str
) -> None:
    """They were never looked for: rows that were lost were exactly_once."""
    scene = LogScene(bumps=bumps)
    happens(scene)
    done = run_on(scene, invoke)("-o", "json")
    assert (codes(done), connector(done)["verdict"]) == (found, verdict)


def test_a_connector_that_aborts_by_itself_commits_offsets_without_records(invoke: Invoke) -> None:
    scene = LogScene(config={"transaction.boundary": "connector"})
    task = scene.task()
    task.commit()
    task.write(OUT, b"k", b"dropped")
    task.end(commit=False)
    task.write(OFFSETS, KEY, b'{"n":2}')
    task.end()
    done = run_on(scene, invoke)("-o", "json")
    assert (codes(done), connector(done)["verdict"]) == ({"transaction_aborted"}, EXACT)


def test_records_that_come_while_the_offsets_are_read_are_looked_for(invoke: Invoke) -> None:
    """The ends of the output topics are looked up first: what was committed since has offsets only, as far as read."""
    scene = LogScene()
    task = scene.task()
    task.commit()
    plan, made = scene.batches.plan, list[object]()

    def planning(topics: object, window: object) -> object:
        found = plan(topics, window)  # type: ignore[arg-type]
        if not made:
            made.append(found)
            task.commit(offset=b'{"n":2}')
        return found

    scene.batches.plan = planning  # type: ignore[assignment, method-assign]
    done = run_on(scene, invoke)("-o", "json")
    assert (codes(done), connector(done)["verdict"]) == (set(), EXACT)


@pytest.mark.parametrize(
    "places", [[(OUT, 1)], [(OFFSETS, 0)], [(OUT, 0), (OUT, 1), (OFFSETS, 0)]], ids=["one", "the offsets", "all"]
)
def test_a_transaction_that_an_operator_completed_is_whole(invoke: Invoke, places: list[tuple[str, int]]) -> None:
    """`eosctl txn complete` writes the markers that brokers skipped, and these do not raise the epoch."""
    scene = LogScene()
    task = scene.task()
    task.commit()
    task.commit()
    for partition in (0, 1):
        task.write(OUT, b"k", b"x", partition=partition)
    task.write(OFFSETS, KEY, b'{"n":2}')
    epoch, known = task.epoch, scene.state.transactions[task.transactional_id]
    for place in known.partitions:
        raised = epoch if place in places else epoch + 1
        scene.state.log(*place).mark((task.producer_id, raised), commit=True)
    known.partitions.clear()
    known.state, known.producer_epoch, task.epoch = "CompleteCommit", epoch + 1, epoch + 1
    task.commit()
    done = run_on(scene, invoke)("-o", "json")
    assert (codes(done), connector(done)["verdict"]) == (set(), EXACT)


def test_aborted_parts_that_are_too_many_are_counted() -> None:
    """They were left out without a word, so that a part of a committed transaction could be among them."""
    ledger = Ledger()
    for epoch in range(MOST_KEPT + 2):
        part = Part(OUT, 0, ProducerId(7), epoch % 30_000, epoch, epoch, 0, 0, 1, is_cut=False)
        part.producer_id = ProducerId(7 + epoch // 30_000)
        part.end(marker(epoch, commit=False), raises_epoch=False)
        ledger.note_output(part)
    assert (len(ledger.aborted), ledger.aborted_unkept) == (MOST_KEPT, 2)
