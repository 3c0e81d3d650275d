"""A connector goes on behind the given offsets, and nowhere else: whatever else is there, and whoever else acts."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from eosctl.connectors.definition import read_definition
from eosctl.core.offsets.records import OffsetKey
from eosctl.create.looks import Twins, find_twins
from eosctl.errors import EosctlError
from tests.create.conftest import Run
from tests.create.test_create import codes, outcomes
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.placing import LINES, PlaceWorld, key_of, position
from tests.fakes.world import CONFIGS, OFFSETS

UNKNOWN = "org.example.UnknownSource"
UNFINISHED = EosctlError("cut off")


@pytest.fixture
def unknown(world: PlaceWorld) -> Callable[[bytes], None]:
    """A class without a rule; its task commits an offset under this key, a moment after its start."""
    world.connect.plugins = [*world.connect.plugins, {"class": UNKNOWN, "type": "source", "version": "1"}]

    def commits(key: bytes) -> None:
        put = partial(world.topics.put, OFFSETS, key, position(9))
        world.connect.after("start_task", lambda _call: world.time.later(1.0, put))

    return commits


def change_state(world: PlaceWorld, verb: str) -> None:
    world.connect.worker().set_state("c", verb)
    world.time.pass_until(world.time.now_s + 10)


def test_global_offsets_of_that_name_do_not_matter_to_a_topic_of_its_own(
    create: Run, world: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str]
) -> None:
    """Connect shows them without an offset: it was called one that Connect does not find, for ever."""
    world.topics.put(OFFSETS, key_of("c", "g"), position(9))
    done = create(definition(offsets_storage_topic="own"), "--offsets", offsets(2), "--yes")
    assert (done.exit_code, world.delivered) == (0, {"c": LINES[2:]})
    assert "other_offsets_in_global" in codes(done)


def test_what_it_has_committed_since_is_not_replaced_by_a_run_that_goes_on(
    create: Run, world: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str]
) -> None:
    """It was resumed by hand after a cut-off run, and ran: the same command put it back to where it began."""
    world.connect.fail_next("set_state", UNFINISHED)
    assert create(definition(), "--offsets", offsets(1), "--yes").exit_code == 7
    change_state(world, "resume")
    change_state(world, "stop")
    done = create(definition(), "--offsets", offsets(1), "--yes")
    assert (done.exit_code, world.stored("c"), world.delivered) == (6, 3, {"c": LINES[1:]})
    assert create(definition(), "--yes").exit_code == 0, "its offsets were written: without --offsets it goes on"
    assert world.delivered == {"c": LINES[1:]}


def test_offsets_that_were_left_are_not_replaced_because_another_order_was_begun(
    create: Run, world: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str]
) -> None:
    world.topics.put(OFFSETS, key_of("c", "f"), position(3))
    world.connect.fail_next("offsets", UNFINISHED)
    assert create(definition(), "--yes").exit_code == 7
    assert create(definition(), "--offsets", offsets(1), "--yes").exit_code == 6
    assert (world.stored("c"), world.delivered) == (3, {})


@pytest.mark.parametrize("verb", ["create", "apply"])
def test_a_run_that_was_to_give_it_offsets_is_not_continued_without(
    run: Run, world: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str], verb: str
) -> None:
    """It would have started at the beginning."""
    world.topics.fail_next("record", UNFINISHED)
    assert run("create", definition(), "--offsets", offsets(2), "--yes").exit_code == 7
    done = run(verb, definition(), "--yes")
    assert (done.exit_code, codes(done), world.delivered) == (6, {"refused"}, {})
    world.connect.delete("c")
    assert run(verb, definition(), "--yes").exit_code == 0, "what was begun is deleted"


def test_a_connector_that_somebody_started_has_its_config_already(
    run: Run, world: PlaceWorld, definition: Callable[..., str]
) -> None:
    """An unfinished `create` made `apply` of the same file fail for ever."""
    world.connect.fail_next("offsets", UNFINISHED)
    assert run("create", definition(), "--yes").exit_code == 7
    change_state(world, "resume")
    done = run("apply", definition())
    assert (done.exit_code, done.json()["data"]["rows"]) == (0, [])


def test_an_offset_that_another_wrote_in_between_keeps_it_stopped(
    create: Run, world: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str]
) -> None:
    """A task of the deleted connector of that name, say. Connect finds that offset, too."""

    def overwrite(_call: object) -> None:
        if world.stored("c") == 1:
            world.topics.put(OFFSETS, key_of("c", "f"), position(3))

    world.connect.before("connectors", overwrite)
    world.connect.before("offsets", overwrite)
    done = create(definition(), "--offsets", offsets(1), "--yes")
    assert (done.exit_code, outcomes(done)["check"], outcomes(done)["resume"]) == (7, "failed", "not_reached")
    assert (world.connect.connectors["c"].state, world.delivered) == ("STOPPED", {})


def test_a_source_that_was_resumed_in_between_keeps_it_stopped(
    create: Run, world: PlaceWorld, definition: Callable[..., str]
) -> None:
    """Both would have read."""
    world.place("old", file="g", state="STOPPED")

    def resume(_call: object) -> None:
        if world.connect.connectors["old"].state == "STOPPED":
            world.connect.set_target("old", "STARTED")
            world.time.pass_until(world.time.now_s + 5)

    world.connect.before("offsets", resume)
    done = create(definition(file="g"), "--offsets", "old", "--yes")
    assert (done.exit_code, outcomes(done)["check"], world.connect.connectors["c"].state) == (7, "failed", "STOPPED")


def test_former_tasks_are_fenced_before_the_offsets_are_written(
    create: Run, world: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str]
) -> None:
    """Connect keeps the task count of a deleted connector, and fences only when the new one starts."""
    world.topics.put(CONFIGS, b"tasks-fencing-c", json.dumps({"task-count": 2}).encode())
    ids = world.brokers.state.transactions
    ids |= {f"g-c-{task}": FakeTransaction(7 + task, 3, "CompleteCommit") for task in range(2)}
    seen: list[int] = []
    world.topics.before("record", lambda _call: seen.append(ids["g-c-1"].producer_epoch))
    done = create(definition(), "--offsets", offsets(2), "--stopped", "--yes")
    assert (done.exit_code, seen[:1]) == (0, [4])


def test_a_committed_id_of_a_former_task_is_no_commit(
    create: Run, world: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str]
) -> None:
    """The group ran exactly-once then, and does not now: its tasks have no ids."""
    world.brokers.state.transactions["g-c-0"] = FakeTransaction(7, 3, "CompleteCommit")
    world.stuck.add("c")
    done = create(definition(), "--offsets", offsets(2), "--yes")
    assert (done.exit_code, "nothing_committed_yet" in codes(done)) == (0, True)


@pytest.mark.parametrize(
    ("key", "exit_code", "found"),
    [
        (key_of("c", "f"), 0, set()),
        (key_of("c", "z"), 3, {"all_partitions_new"}),
        (b'["c", {"filename":"f"}]', 3, {"all_partitions_new"}),
    ],
)
def test_what_it_commits_shows_whether_it_goes_on(
    create: Run,
    unknown: Callable[[bytes], None],
    definition: Callable[..., str],
    offsets: Callable[..., str],
    key: bytes,
    exit_code: int,
    found: set[str],
) -> None:
    """Whether it commits was seen, and not what: a class without a rule may have other source partitions, or keys."""
    unknown(key)
    done = create(definition(connector_class=UNKNOWN), "--offsets", offsets(2), "--yes")
    assert (done.exit_code, codes(done)) == (exit_code, found)


@pytest.mark.parametrize(("given", "exit_code"), [(True, 3), (False, 0)])
def test_a_deletion_is_no_offset_to_go_on_from(
    create: Run,
    world: PlaceWorld,
    unknown: Callable[[bytes], None],
    definition: Callable[..., str],
    offsets: Callable[..., str],
    given: bool,
    exit_code: int,
) -> None:
    world.topics.put(OFFSETS, key_of("c", "z"), None)
    world.topics.put(OFFSETS, key_of("c", "y"), None)
    unknown(key_of("c", "z"))
    args = ["--offsets", offsets(2)] if given else []
    done = create(definition(connector_class=UNKNOWN), *args, "--yes")
    assert (done.exit_code, "all_partitions_new" in codes(done)) == (exit_code, given)


def test_tasks_that_a_deleted_connector_left_are_no_start(
    create: Run, world: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str]
) -> None:
    """Below 3.8 the new one has them by its configs, and is STOPPED all the same."""

    def leave(_call: object) -> None:
        world.connect.connectors["c"].task_count = 2

    world.connect.version = "3.7.2"
    world.connect.after("create_connector", leave)
    done = create(definition(), "--offsets", offsets(2), "--yes")
    assert (done.exit_code, world.delivered) == (0, {"c": LINES[2:]})


def test_a_body_does_not_say_how_keys_are_spelled(
    create: Run, unknown: Callable[[bytes], None], definition: Callable[..., str], tmp_path: Path
) -> None:
    body = {"offsets": [{"partition": {"table": "t", "shard": 1}, "offset": {"position": 1}}]}
    (tmp_path / "o.json").write_text(json.dumps(body), encoding="utf-8")
    unknown(key_of("c", "f"))
    done = create(definition(connector_class=UNKNOWN), "--offsets", str(tmp_path / "o.json"), "--dry-run")
    assert (done.exit_code, codes(done)) == (0, {"spelling_guessed"})


class Compared(dict[str, object]):
    """A source partition that counts what it is compared with."""

    times = 0
    __hash__ = None

    def __eq__(self, other: object) -> bool:
        Compared.times += 1
        return dict.__eq__(self, other)


def test_the_offsets_of_another_are_not_compared_each_with_each(
    world: PlaceWorld, definition: Callable[..., str]
) -> None:
    """With a million of its class's on both sides `connectors create` would have taken hours."""
    world.place("other", file="g")
    others = world.connect.worker().connectors()
    found = read_definition(definition(), stdin=io.BytesIO())
    keys = {
        name: [OffsetKey(b"", name, Compared(filename=f"{name}-{number}")) for number in range(300)]
        for name in ("c", "other")
    }
    assert find_twins(found, keys["c"], others, keys) == Twins()
    assert Compared.times <= 600
    keys["other"].append(keys["c"][-1])
    assert find_twins(found, keys["c"], others, keys) == Twins(certain=("other",))
