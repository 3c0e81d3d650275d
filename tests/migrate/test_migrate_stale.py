"""A plan of `offsets migrate` that no longer holds: found out before Spark starts, in a dry run too."""

from __future__ import annotations

from pathlib import Path

import pytest

from eosctl.core.allowances import Allowances
from eosctl.errors import ExitCode, RefusedError, StalePlanError
from tests.fakes.migration import KEY, SOURCE, Scene, key_of


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path)
    made.put(SOURCE, {KEY: b'{"n":1}'})
    made.add_topic("offsets-a")
    return made


def accepting(*sides: str) -> Allowances:
    return Allowances(force_running=True, accept_drift=frozenset(sides))


@pytest.mark.parametrize(
    ("side", "hint"),
    [
        ("source", "--accept-drift source writes what the plan has read, not what came since: a connector that goes "
         "on from the target reads again what it has read since then."),
        ("target", "--accept-drift target puts what the plan has read over what came since."),
    ],
)  # fmt: skip
def test_new_offsets_are_found_without_spark(scene: Scene, side: str, hint: str) -> None:
    """Spark took its ten seconds to start first, and the hint did not tell what --accept-drift would write."""
    plan = scene.plan()
    scene.calls.clear()
    scene.put(SOURCE if side == "source" else "offsets-a", {KEY: b'{"n":2}'})
    with pytest.raises(StalePlanError, match=f"the {side} has new offsets of a since the plan was made") as caught:
        scene.from_file(plan).report()
    assert caught.value.hint == f"Stop these connectors and plan again. {hint}"
    assert scene.calls == []
    assert scene.from_file(plan, accepting(side)).report().problems == ()


def test_a_dry_run_tells_it_as_a_warning(scene: Scene) -> None:
    """`--plan FILE --dry-run` said nothing, and the same command with --yes was refused."""
    plan = scene.plan()
    assert scene.from_file(plan).report(dry_run=True).problems == ()
    scene.put(SOURCE, {KEY: b'{"n":2}'})
    report = scene.from_file(plan).report(dry_run=True)
    assert (report.exit_code, [(each.code, each.severity) for each in report.problems]) == (
        ExitCode.OK,
        [("stale_plan", "warning")],
    )
    assert report.problems[0].message.startswith("would be refused: the source has new offsets of a")


def test_what_other_connectors_write_is_no_drift(scene: Scene) -> None:
    """The global offsets topic of a live cluster never stands still."""
    plan = scene.plan()
    scene.put(SOURCE, {key_of("other"): b'{"n":2}', b"nobody's": b"1"})
    assert scene.apply(plan).exit_code is ExitCode.OK


def test_a_topic_that_was_recreated_and_one_that_hides_something_are_found_as_early(scene: Scene) -> None:
    plan = scene.plan()
    scene.calls.clear()
    scene.topics.open_transaction(SOURCE, 0)
    with pytest.raises(RefusedError, match="may hide committed offsets"):
        scene.from_file(plan).report()
    scene.topics.close_transaction(SOURCE, 0)
    scene.topics.add_topic("offsets-a", 2)
    with pytest.raises(StalePlanError, match="topic offsets-a was recreated"):
        scene.from_file(plan, accepting("source", "target")).report()
    assert scene.calls == []


def test_what_the_plan_itself_has_written_is_no_drift(scene: Scene) -> None:
    """A plan that was applied says that it was, and not that its own records are new."""
    plan = scene.plan()
    assert scene.apply(plan).exit_code is ExitCode.OK
    with pytest.raises(RefusedError, match="this plan was applied before"):
        scene.apply(plan)
