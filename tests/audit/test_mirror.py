"""`audit` of MirrorMaker 2: the target has as many records as the source committed in what was copied, or not."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eosctl.audit.audit import audit
from eosctl.audit.rows import AuditRow
from eosctl.audit.scope import AuditRequest
from eosctl.core.records import ScanPlan, Window
from tests.audit.happenings import codes, connector
from tests.audit.log_scene import MIRRORED, OWN, SOURCE, LogScene, Task, mirror, mirror_scene, run_on
from tests.conftest import Invoke
from tests.fakes.world import OFFSETS

STORED_KEY = b'["m",{"cluster":"A","partition":0,"topic":"src"}]'


def write_source(scene: LogScene) -> None:
    """Offsets 0 and 1 are plain records, 2 is an aborted one with its marker, 4 and 5 are committed, 6 is a marker."""
    for _ in range(2):
        scene.plain(SOURCE, b"k", b"v")
    writer = scene.task(0, "writer")
    writer.write(SOURCE, b"k", b"aborted")
    writer.end(commit=False)
    writer.write(SOURCE, b"k", b"v")
    writer.write(SOURCE, b"k", b"v")
    writer.end()


def all_of_it(scene: LogScene) -> None:
    task = scene.task(0, "m")
    mirror(task, 1, 2)
    mirror(task, 5, 2)


def aborted_ones_too(scene: LogScene) -> None:
    task = scene.task(0, "m")
    mirror(task, 1, 2)
    mirror(task, 5, 3)


def one_is_missing(scene: LogScene) -> None:
    task = scene.task(0, "m")
    mirror(task, 1, 2)
    mirror(task, 5, 1)


def beyond_the_end(scene: LogScene) -> None:
    task = scene.task(0, "m")
    mirror(task, 1, 2)
    mirror(task, 70, 2)


def back_again(scene: LogScene) -> None:
    all_of_it(scene)
    mirror(scene.task(0, "m"), 1, 2)


@pytest.mark.parametrize("bumps", [True, False])
@pytest.mark.parametrize(
    ("happens", "found"),
    [
        (all_of_it, set()),
        (aborted_ones_too, {"mirror_duplicate"}),
        (one_is_missing, {"mirror_gap"}),
        (beyond_the_end, {"source_topic_recreated"}),
        (back_again, {"source_topic_recreated", "source_offset_went_back"}),
    ],
)
def test_a_copy_is_compared_with_its_source(
    invoke: Invoke, bumps: bool, happens: Callable[[LogScene], None], found: set[str]
) -> None:
    scene = mirror_scene(bumps=bumps)
    write_source(scene)
    happens(scene)
    done = run_on(scene, invoke)("-o", "json", "--connector", "m")
    assert (codes(done), done.exit_code) == (found, 3 if found else 0)
    assert [each["code"] for each in done.json()["errors"]] == []


def test_a_window_compares_what_was_copied_in_it(invoke: Invoke) -> None:
    """What was copied before the window has its offset there: the first transaction says from where on to count."""
    scene = mirror_scene()
    write_source(scene)
    task = scene.task(0, "m")
    mirror(task, 0, 1)
    mirror(task, 1, 1)
    mirror(task, 5, 1)
    run = run_on(scene, invoke)
    assert codes(run("-o", "json", "--connector", "m", "--since", "2")) == {"mirror_gap"}
    assert codes(run("-o", "json", "--connector", "m", "--since", "2", "--until", "4")) == set()


def test_a_window_of_a_shared_epoch_is_not_compared(invoke: Invoke) -> None:
    """Nobody can say which offset is that of the first transaction; that nothing was compared was not said."""
    scene = mirror_scene(bumps=False)
    write_source(scene)
    all_of_it(scene)
    done = run_on(scene, invoke)("-o", "json", "--connector", "m", "--since", "3")
    assert (codes(done), connector(done)["verdict"]) == (set(), "unproven")
    assert "can't be compared with the source" in connector(done)["why"]


def test_a_source_that_is_gone_is_said(invoke: Invoke) -> None:
    scene = mirror_scene()
    write_source(scene)
    all_of_it(scene)
    del scene.topics.topics[SOURCE]
    done = run_on(scene, invoke)("-o", "json", "--connector", "m")
    assert [each["message"] for each in done.json()["errors"]] == [
        f"{SOURCE}-0 of the source was not compared: the topic does not exist"
    ]
    assert (connector(done)["verdict"], done.exit_code) == ("unproven", 7), (
        "it was exactly_once, of which nothing is known"
    )
    assert f"{SOURCE}-0 of the source was not compared" in connector(done)["why"]


def test_a_source_that_can_not_be_reached_leaves_it_unproven(invoke: Invoke) -> None:
    """What a MirrorMaker copied was exactly_once where nobody had compared it with anything."""
    scene = mirror_scene()
    write_source(scene)
    all_of_it(scene)
    config = scene.connect.connectors["m"].config
    config["source.cluster.bootstrap.servers"] = "elsewhere:9092"
    config["source.cluster.ssl.truststore.location"] = "/x.jks"
    done = run_on(scene, invoke)("-o", "json", "--connector", "m")
    assert (connector(done)["verdict"], done.exit_code) == ("unproven", 7)
    assert "the source topics were not compared: the source cluster is elsewhere:9092" in connector(done)["why"]


@pytest.mark.parametrize("name", ["MirrorSource", "MirrorSourceConnector", " MirrorSource "])
def test_a_mirror_by_its_short_name_is_compared_too(invoke: Invoke, name: str) -> None:
    """It was taken for any connector, so that records that are missing were exactly_once."""
    scene = mirror_scene()
    write_source(scene)
    one_is_missing(scene)
    scene.connect.connectors["m"].config["connector.class"] = name
    assert codes(run_on(scene, invoke)("-o", "json", "--connector", "m")) == {"mirror_gap"}


def test_transforms_may_leave_records_out(invoke: Invoke) -> None:
    """Nothing is compared then, and that was exactly_once."""
    scene = mirror_scene()
    write_source(scene)
    one_is_missing(scene)
    scene.connect.connectors["m"].config["transforms"] = "filter"
    done = run_on(scene, invoke)("-o", "json", "--connector", "m", "--topic", MIRRORED)
    assert (codes(done), connector(done)["verdict"], done.exit_code) == (set(), "unproven", 7)


def twenty(scene: LogScene) -> Task:
    """A source of 20 records, and the connector's task."""
    for _ in range(20):
        scene.plain(SOURCE, b"k", b"v")
    scene.connect.add("d", {"topic": MIRRORED})
    return scene.task(0, "m")


def foreign(scene: LogScene) -> None:
    scene.task(0, "d").commit(b"a", b"b", b"c", topic=MIRRORED, key=b'["d",{}]')


def stored_by_eosctl(scene: LogScene, offset: int) -> None:
    writer = scene.task()
    writer.transactional_id = "eosctl-offsets-g-writer"
    writer.start().write(OFFSETS, STORED_KEY, b'{"offset":%d}' % offset)
    writer.end()


def nothing_lost_beside_foreign_records(scene: LogScene) -> None:
    task = twenty(scene)
    mirror(task, 9, 10)
    foreign(scene)
    mirror(task, 19, 10)


def as_many_lost_as_foreign(scene: LogScene) -> None:
    task = twenty(scene)
    mirror(task, 9, 10)
    foreign(scene)
    mirror(task, 19, 7)


def as_many_lost_as_twice(scene: LogScene) -> None:
    task = twenty(scene)
    mirror(task, 1, 2)
    mirror(task, 9, 5)
    mirror(task, 19, 13)


def a_transaction_without_records(scene: LogScene) -> None:
    task = twenty(scene)
    mirror(task, 9, 10)
    task.write(OFFSETS, STORED_KEY, b'{"offset":14}')
    task.end()
    mirror(task, 19, 5)


def begun_at_latest(scene: LogScene) -> None:
    """source.consumer.auto.offset.reset=latest (Kafka 3.7+): what was there before is not copied."""
    task = twenty(scene)
    mirror(task, 14, 5)
    mirror(task, 19, 5)


def begun_where_eosctl_said(scene: LogScene) -> None:
    twenty(scene)
    stored_by_eosctl(scene, 9)
    task = scene.task(0, "m")
    mirror(task, 14, 5)
    mirror(task, 19, 5)


def moved_on_by_eosctl(scene: LogScene) -> None:
    mirror(twenty(scene), 9, 10)
    stored_by_eosctl(scene, 14)
    mirror(scene.task(0, "m"), 19, 5)


def moved_back_by_eosctl(scene: LogScene) -> None:
    mirror(twenty(scene), 9, 10)
    stored_by_eosctl(scene, 4)
    mirror(scene.task(0, "m"), 19, 15)


@pytest.mark.parametrize(
    ("happens", "found", "verdict"),
    [
        (nothing_lost_beside_foreign_records, {}, "exactly_once"),
        (as_many_lost_as_foreign, {"mirror_gap": 3}, "not_exactly_once"),
        (as_many_lost_as_twice, {"mirror_gap": 3, "mirror_duplicate": 3}, "not_exactly_once"),
        (a_transaction_without_records, {"mirror_gap": 5}, "not_exactly_once"),
        (begun_at_latest, {}, "unproven"),
        (begun_where_eosctl_said, {}, "exactly_once"),
        (moved_on_by_eosctl, {}, "unproven"),
        (moved_back_by_eosctl, {"source_topic_recreated": 1, "source_offset_went_back": 1}, "not_exactly_once"),
    ],
)
def test_each_transaction_is_compared_with_its_own_range(
    invoke: Invoke, happens: Callable[[LogScene], None], found: dict[str, int], verdict: str
) -> None:
    """Sums were compared, of everybody's records, from an assumed beginning: faults made up for each other."""
    scene = mirror_scene()
    happens(scene)
    done = run_on(scene, invoke)("-o", "json", "--connector", "m")
    rows = {row["code"]: row["count"] for row in done.json()["data"]["rows"] if row["code"] != "foreign_producer"}
    assert (rows, connector(done)["verdict"]) == (found, verdict)


def test_offsets_that_moved_to_a_topic_of_their_own_are_those_of_before(invoke: Invoke) -> None:
    """`eosctl offsets switch` copies the offset; in the order of the two logs nothing goes back."""
    scene = mirror_scene()
    mirror(twenty(scene), 4, 5)
    mirror(scene.task(0, "m"), 9, 5)
    scene.topics.add_topic(OWN, 1, {"cleanup.policy": "delete"})
    scene.connect.connectors["m"].config["offsets.storage.topic"] = OWN
    scene.offsets_topic = OWN
    writer = scene.task()
    writer.transactional_id = "eosctl-offsets-g-writer"
    writer.start().write(OWN, STORED_KEY, b'{"offset":9}')
    writer.end()
    mirror(scene.task(0, "m"), 14, 5)
    run = run_on(scene, invoke)
    done = run("-o", "json", "--connector", "m")
    assert (codes(done) - {"offsets_elsewhere"}, connector(done)["verdict"]) == (set(), "exactly_once")
    mirror(scene.task(0, "m"), 19, 4)
    assert "mirror_gap" in codes(run("-o", "json", "--connector", "m"))


def test_copies_whose_offsets_are_lost_are_not_those_of_the_next_offset(invoke: Invoke) -> None:
    """Where the target's beginning is lost, the first offset that is left belongs to a part of unknown length."""
    scene = mirror_scene()
    task = twenty(scene)
    for last in (4, 9, 14, 19):
        mirror(task, last, 5)
    scene.state.log(MIRRORED, 0).delete_before(6)
    scene.state.log(OFFSETS, 0).delete_before(4)
    done = run_on(scene, invoke)("-o", "json", "--connector", "m")
    assert (codes(done), connector(done)["verdict"]) == (set(), "unproven")


def test_a_transaction_that_is_missing_among_those_of_one_epoch_proves_nothing(invoke: Invoke) -> None:
    """Offsets are counted off then: that of a transaction without records was taken for its neighbour's."""
    scene = mirror_scene(bumps=False)
    task = twenty(scene)
    mirror(task, 4, 5)
    task.write(OFFSETS, STORED_KEY, b'{"offset":9}')
    task.end()
    mirror(task, 14, 5)
    mirror(task, 19, 5)
    assert connector(run_on(scene, invoke)("-o", "json", "--connector", "m"))["verdict"] == "unproven"


def test_offsets_that_are_younger_than_what_was_read_are_no_loss(invoke: Invoke) -> None:
    """The offsets topic is looked at after the target topics: a MirrorMaker at work has more offsets then."""
    scene = mirror_scene(bumps=False)
    task = twenty(scene)
    mirror(task, 4, 5)
    mirror(task, 9, 5)
    plan, plans = scene.batches.plan, list[ScanPlan]()

    def planning(topics: Collection[str], window: Window) -> ScanPlan:
        found = plan(topics, window)
        if MIRRORED in topics and not plans:
            plans.append(found)
            mirror(task, 14, 5)
        return found

    scene.batches.plan = planning  # type: ignore[method-assign]
    assert connector(run_on(scene, invoke)("-o", "json", "--connector", "m"))["verdict"] == "exactly_once"


def test_another_policy_of_names_is_not_compared(invoke: Invoke) -> None:
    """No offset belonged to the target topic, so that nothing was compared; and that was exactly_once."""
    scene = mirror_scene()
    write_source(scene)
    scene.topics.add_topic("copy-of-src", 1, {"cleanup.policy": "delete"})
    scene.connect.connectors["m"].topics |= {"copy-of-src"}
    scene.connect.connectors["m"].topics.discard(MIRRORED)
    task = scene.task(0, "m")
    task.commit(b"v", b"v", topic="copy-of-src", key=STORED_KEY, offset=b'{"offset":1}')
    done = run_on(scene, invoke)("-o", "json", "--connector", "m")
    assert (codes(done), connector(done)["verdict"]) == (set(), "unproven")
    assert "copies in copy-of-src-0 were not compared" in connector(done)["why"]


def test_the_first_copy_in_a_window_may_have_begun_before(invoke: Invoke) -> None:
    scene = mirror_scene()
    task = twenty(scene)
    mirror(task, 9, 10)
    mirror(task, 19, 10)
    run = run_on(scene, invoke)
    whole, cut = (run("-o", "json", "--connector", "m", "--since", since) for since in ("11", "13"))
    assert (connector(whole)["verdict"], connector(cut)["verdict"]) == ("exactly_once", "unproven")


Step = tuple[str, int, int]
steps = st.lists(
    st.tuples(
        st.sampled_from(["copy", "lose", "repeat", "abort", "restart", "foreign"]), st.integers(1, 4), st.integers(1, 4)
    ),
    max_size=8,
)


@given(st.lists(st.sampled_from([True, True, False]), min_size=40, max_size=40), steps, st.booleans())
@settings(max_examples=60, deadline=None)
def test_faults_are_found_transaction_by_transaction(source: list[bool], happens: list[Step], bumps: bool) -> None:
    """Held against what was really done: each record of the source is committed or aborted, each step honest or not."""
    scene = mirror_scene(bumps=bumps)
    scene.connect.add("d", {"topic": MIRRORED})
    writer, committed = scene.task(0, "writer"), list[int]()
    for is_kept in source:
        committed += [scene.state.log(SOURCE, 0).end] if is_kept else []
        writer.write(SOURCE, b"k", b"v")
        writer.end(commit=is_kept)
    task, at, lost, twice = scene.task(0, "m"), 0, 0, 0
    for kind, size, more in [("copy", 1, 0), *happens, ("copy", 1, 0)]:
        if kind == "restart":
            task = scene.task(0, "m")
        elif kind == "foreign":
            scene.task(0, "d").commit(*[b"v"] * size, topic=MIRRORED, key=b'["d",{}]')
        elif kind == "abort":
            for _ in range(size):
                task.write(MIRRORED, b"k", b"v")
            task.write(OFFSETS, STORED_KEY, b'{"offset":%d}' % committed[-1])
            task.end(commit=False)
        elif at + size < len(committed):
            at += size
            less = min(more, size - 1) if kind == "lose" else 0
            added = more if kind == "repeat" else 0
            lost, twice = lost + less, twice + added
            mirror(task, committed[at - 1], size - less + added)
    report = audit(scene.app(connect_urls=("http://w0:8083",)), AuditRequest(connector="m", since="beginning"))
    counts = {row.code: row.count for row in report.rows_of(AuditRow) if row.code in ("mirror_gap", "mirror_duplicate")}
    assert counts == {code: count for code, count in (("mirror_gap", lost), ("mirror_duplicate", twice)) if count}
    assert (report.exit_code == 0) is (not lost and not twice)
