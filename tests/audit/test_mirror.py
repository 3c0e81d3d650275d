"""`audit` of MirrorMaker 2: the target has as many records as the source committed in what was copied, or not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.audit.happenings import codes, connector
from tests.audit.log_scene import MIRRORED, SOURCE, LogScene, mirror, mirror_scene, run_on
from tests.conftest import Invoke


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
    scene = mirror_scene()
    write_source(scene)
    one_is_missing(scene)
    scene.connect.connectors["m"].config["transforms"] = "filter"
    assert codes(run_on(scene, invoke)("-o", "json", "--connector", "m", "--topic", MIRRORED)) == set()
