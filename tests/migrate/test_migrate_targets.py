"""The topics that a migration makes: how they are planned, made by the hundred, and what a refused one means."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, cast

import pytest

from eosctl.app import App
from eosctl.core.configs.records import Selection
from eosctl.core.offsets.migration import PlannedTopic
from eosctl.core.records import Bounds, OutRecord
from eosctl.deadline import Clock, Deadline
from eosctl.errors import (
    BrokerError,
    DeadlineError,
    ExitCode,
    RefusedError,
    StalePlanError,
    UnauthorizedError,
    UsageError,
)
from eosctl.migrate.stores import TopicSize
from eosctl.migrate.topics import grown_since, present_topics
from eosctl.report import plain
from eosctl.target import Target
from tests.fakes.faults import Call
from tests.fakes.migration import Scene, plan_of
from tests.fakes.topics import FakeTopicStore
from tests.reports import text_of

HUNDREDS = [f"c{number:03}" for number in range(500)]
DENIED = UnauthorizedError("not authorized: creating topic offsets-a failed (CREATE on Topic offsets-a is needed)")


def batches(scene: Scene) -> list[int]:
    """How many topics each request creates, from now on."""
    found: list[int] = []

    def note(call: Call) -> None:
        match call.what:
            case (list(topics), False):
                found.append(len(topics))

    scene.topics.after("create_all", note)
    return found


@pytest.mark.parametrize(
    ("size", "planned"),
    [
        (TopicSize(), (2, 3)),
        (TopicSize(partitions=7), (7, 3)),
        (TopicSize(replication_factor=1), (2, 1)),
        (TopicSize(partitions=1, replication_factor=2), (1, 2)),
    ],
)
def test_new_topics_are_like_the_source_or_as_asked(scene: Scene, size: TopicSize, planned: tuple[int, int]) -> None:
    prepared = scene.prepared(new_topics=size)
    (target,) = plan_of(prepared.report()).targets
    assert (target.partitions, target.replication_factor) == planned
    assert prepared.apply is not None
    prepared.apply()
    (made,) = scene.topics.describe(["offsets-a"]).values()
    assert (made.partitions, made.replication_factor, made.config["cleanup.policy"]) == (*planned, "compact")


def test_topics_are_looked_at_when_committed_readers_may_pass_what_was_sent(tmp_path: Path) -> None:
    """The last stable offset at the record itself, not behind it, was taken for the end of the wait.

    All bounds were asked for once more after it.
    """
    topics = FakeTopicStore()
    topics.add_topic("t", 2)
    topics.open_transaction("t", 0)
    [written] = topics.write([OutRecord("t", b"k", b"v", partition=0)])
    slept, asked = list[float](), list[Any]()
    topics.after("bounds_of", lambda call: asked.append(call.what))

    def sleep(wanted_s: float) -> None:
        slept.append(wanted_s)
        topics.close_transaction("t", 0)

    clock = Clock(sleep_s=sleep)
    app = App(Target(), Deadline.after(30, clock), tmp_path, clock=clock, open_topics=lambda _app: topics)
    [found] = present_topics(app, [PlannedTopic("t", None, 2, 1)], after={("t", 0): written.offset})
    assert (slept, len(asked)) == ([0.1], 2)
    assert found.bounds == topics.bounds("t")


def test_a_partition_that_is_gone_after_the_write_ends_the_wait_at_its_deadline(tmp_path: Path) -> None:
    """A topic that somebody recreated, with fewer partitions: an unexpected KeyError."""
    topics, now_s = FakeTopicStore(), [0.0]
    topics.add_topic("t", 2)

    def sleep(wanted_s: float) -> None:
        now_s[0] += wanted_s

    clock = Clock(monotonic_s=lambda: now_s[0], sleep_s=sleep)
    app = App(Target(), Deadline.after(30, clock), tmp_path, clock=clock, open_topics=lambda _app: topics)
    with pytest.raises(DeadlineError, match="waiting for the commit to reach all partitions"):
        present_topics(app, [PlannedTopic("t", None, 2, 1)], after={("t", 5): 0})


def test_a_topic_that_is_there_keeps_its_size(scene: Scene) -> None:
    scene.add_topic("offsets-a", 1)
    (target,) = plan_of(scene.prepared(new_topics=TopicSize(7, 1)).report()).targets
    assert (target.topic_id, target.partitions, target.replication_factor) == (
        scene.topics.topics["offsets-a"].topic_id,
        1,
        3,
    )


def test_a_file_has_no_partitions(scene: Scene, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a file has no partitions"):
        scene.prepared(target=str(tmp_path / "new.ndjson"), new_topics=TopicSize(partitions=3))


@pytest.mark.parametrize(
    ("connectors", "size", "lines"),
    [
        (["a"], TopicSize(1), ["creates topic offsets-a: compacted, 1 partition, replication factor 3"]),
        (
            HUNDREDS,
            TopicSize(25),
            [
                "creates 500 topics, offsets-c000 ... offsets-c499: compacted, 25 partitions, replication factor 3 "
                "each; 12,500 partitions in all"
            ],
        ),
    ],
)
def test_a_plan_tells_how_many_topics_it_creates(
    scene: Scene, connectors: list[str], size: TopicSize, lines: list[str]
) -> None:
    """There was a line for each of 500 topics."""
    scene.put_all(connectors)
    prepared = scene.prepared(new_topics=size, selection=Selection(connectors=tuple(connectors)))
    assert [line for line in text_of(prepared.report()).splitlines() if line.startswith("creates")] == lines
    assert prepared.apply is not None
    done = [line for line in text_of(prepared.apply()).splitlines() if line.startswith("creat")]
    assert done == [line.replace("creates", "created") for line in lines]


@pytest.mark.parametrize(("partitions", "at_once"), [(1, [50] * 10), (25, [20] * 25), (600, [1] * 3)])
def test_hundreds_of_topics_are_made_in_batches(scene: Scene, partitions: int, at_once: list[int]) -> None:
    """One topic per request, without a word: 500 took four minutes on a busy broker, and a timeout of 60 s."""
    names = HUNDREDS[: sum(at_once)]
    scene.put_all(names)
    prepared = scene.prepared(new_topics=TopicSize(partitions), selection=Selection(pattern="c*"))
    requests = batches(scene)
    scene.topics.before("create_all", lambda _call: scene.time.sleep(20))  # of the 30 s that --timeout gives
    assert prepared.apply is not None
    assert prepared.apply().data.created == [f"offsets-{name}" for name in names]
    assert requests == at_once
    told = [(event.done, event.total, event.unit) for event in scene.events if event.message == "creating topics"]
    assert told == [(sum(at_once[:done]), len(names), "topics") for done in range(len(at_once) + 1)]


def test_many_targets_are_looked_up_by_few_requests(scene: Scene) -> None:
    """Each topic's offsets were asked for one after the other, in every look at a plan's targets."""
    asked: list[int] = []
    scene.topics.before("bounds_of", lambda call: asked.append(len(cast("Collection[str]", call.what[0]))))
    scene.topics.before("bounds", lambda _call: asked.append(1))
    scene.put_all(HUNDREDS)
    for name in HUNDREDS:
        scene.add_topic(f"offsets-{name}", 1)
    prepared = scene.prepared(selection=Selection(pattern="c*"))
    assert asked == [1, 500]
    assert prepared.apply is not None
    prepared.apply()
    assert len(asked) <= 6


def test_what_brokers_would_refuse_is_told_by_the_plan(scene: Scene) -> None:
    """It came out when the plan was applied."""
    with pytest.raises(
        BrokerError, match=r"1 of 1 new topic can't be created: .*INVALID_REPLICATION_FACTOR"
    ) as refused:
        scene.prepared(new_topics=TopicSize(replication_factor=4))
    assert "--replication-factor" in str(refused.value.hint)
    assert list((scene.folder / "migrations").iterdir()) == []


def test_who_may_not_create_topics_may_plan(scene: Scene) -> None:
    scene.topics.denied["offsets-a"] = DENIED
    assert scene.prepared().apply is not None
    assert [event.message for event in scene.events if event.warning] == [
        f"applying this plan needs more rights than this client has: {DENIED}"
    ]


@pytest.mark.parametrize(
    ("connectors", "created", "exit_code"),
    [(["a", "b"], ["offsets-b"], ExitCode.PARTIAL), (["a"], [], ExitCode.UNAUTHORIZED)],
)
def test_a_refused_topic_keeps_all_offsets_from_being_written(
    scene: Scene, connectors: list[str], created: list[str], exit_code: ExitCode
) -> None:
    scene.put_all(connectors)
    plan = scene.plan()
    scene.topics.denied["offsets-a"] = DENIED
    result = scene.apply(plan)
    assert (result.exit_code, result.rows, result.data.created) == (exit_code, [], created)
    assert plain(result.data.not_created) == [
        {"topic": "offsets-a", "error": {"code": "not_authorized", "message": DENIED.message}}
    ]
    assert [problem.code for problem in result.problems] == ["not_authorized", "topics_not_created"]
    assert f"1 new topic was not created, {len(created)} were" in result.problems[1].message
    assert str(result.problems[1].hint).endswith("plan.json --yes --resume")
    assert not any(call.startswith("write") for call in scene.calls)
    assert "Nothing was written." in text_of(result)

    scene.topics.denied.clear()
    resumed = scene.apply(plan, resume=True)
    assert (resumed.exit_code, resumed.data.created) == (ExitCode.OK, ["offsets-a"])
    assert scene.calls[-2].startswith("write decisions in ")


def test_an_interrupt_while_topics_are_made_is_gone_on_from(scene: Scene) -> None:
    scene.put_all(HUNDREDS)
    plan = scene.plan(selection=Selection(pattern="c*"))
    scene.topics.fail_next("create_all", KeyboardInterrupt(), skip=1)
    report = scene.apply(plan)
    assert report.exit_code is ExitCode.INTERRUPTED
    assert [row.outcome for row in report.rows] == ["done", "failed", "not_reached", "not_reached"]
    assert [event.message for event in scene.events if event.warning] == [
        "50 of 500 topics were created before this; they are not created again"
    ]
    requests = batches(scene)
    assert scene.apply(plan, resume=True).exit_code is ExitCode.OK
    assert sum(requests) == 450
    assert scene.created() == [f"offsets-{name}" for name in HUNDREDS]


def test_a_topic_that_came_meanwhile_with_other_partitions(scene: Scene) -> None:
    """The keys would lie where Connect's producer does not put them."""
    scene.put_all(["a", "b"])
    plan = scene.plan()
    scene.topics.denied["offsets-a"] = DENIED
    scene.apply(plan)
    scene.add_topic("offsets-a", 1)
    with pytest.raises(StalePlanError, match="topic offsets-a has 1 partition, the plan says 2"):
        scene.apply(plan, resume=True)


@pytest.mark.parametrize(
    ("request_", "complaint"),
    [
        ({"target": "data"}, "topic data holds records that are not offsets"),
        ({"target": "plain"}, "topic plain is not compacted"),
        ({"target": "connect-configs"}, "topic connect-configs is the config topic of the group"),
        ({"sources": ("data",)}, "topic data holds records that are not offsets"),
        ({"sources": ("connect-status",)}, "topic connect-status is the status topic of the group"),
    ],
)
def test_offsets_do_not_move_to_or_from_topics_of_another_kind(
    scene: Scene, request_: dict[str, Any], complaint: str
) -> None:
    """Any topic used to be taken for an offsets topic, and those that lose offsets too."""
    scene.add_topic("data", 2, *(b"user-%d" % number for number in range(5)))
    scene.topics.add_topic("plain", 2, {"cleanup.policy": "delete"})
    with pytest.raises(RefusedError, match=complaint):
        scene.prepared(**request_)
    assert not [call for call in scene.calls if call.startswith(("write", "backup"))]
    assert scene.created() == ["data", "plain"]


def planned_topic(*bounds: tuple[int, int], topic_id: str | None = "id") -> PlannedTopic:
    """Partitions from begin to LSO."""
    some = tuple(Bounds(number, begin, lso, lso) for number, (begin, lso) in enumerate(bounds))
    return PlannedTopic("t", topic_id, len(bounds), 1, some)


def test_of_topics_that_have_only_grown_what_came_since_is_read() -> None:
    planned, now = planned_topic((0, 5), (2, 2)), planned_topic((0, 9), (2, 3))
    assert grown_since([planned], [now]) == [planned_topic((5, 9), (2, 3))]
    assert grown_since([planned_topic(topic_id=None)], [now]) == [now], "one that was made is read from its beginning"


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(None, id="it is gone"),
        pytest.param(planned_topic((0, 9), (2, 3), topic_id="other"), id="it was recreated"),
        pytest.param(planned_topic((1, 9), (2, 3)), id="its first records were deleted"),
        pytest.param(planned_topic((0, 4), (2, 3)), id="its last records were lost"),
        pytest.param(PlannedTopic("file:/t", "id", 2, 1), id="a file"),
    ],
)
def test_what_may_have_lost_something_is_read_again(now: PlannedTopic | None) -> None:
    """Of a key that a plan leaves alone nothing is read where the log before the plan is as it was."""
    assert grown_since([planned_topic((0, 5), (2, 2))], [] if now is None else [now]) is None
