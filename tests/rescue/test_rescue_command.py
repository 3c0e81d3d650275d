"""`eosctl rescue` and `eosctl task-counts write` as a person runs them: whole output, exit codes, the question."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from eosctl.core.transactions import RawGroup
from tests.fakes.rescue_scene import Scene, stop
from tests.fakes.world import CONFIGS

Invoke = Any
Golden = Callable[[str, str], None]


@pytest.fixture
def run(invoke: Invoke, scene: Scene) -> Invoke:
    """`eosctl ARGS…` on the scene."""

    def command(*args: str, **more: Any) -> Any:
        urls = [word for url in scene.connect.modes for word in ("-u", url)]
        flags = ["-b", ",".join(scene.brokers.bootstrap_servers), *urls, "-g", "g"]
        return invoke(*args, *flags, **scene.surroundings, **more)

    return command


def without_paths(text: str) -> str:
    """The text with the paths of backup and journal, which are others in every run, cut to their names."""
    text = re.sub(r"/\S*/journals/([a-z-]+)-\S+\.ndjson", r"JOURNALS/\1.ndjson", text)
    return re.sub(r"/\S*/backups/([a-z-]+)-\S+\.ndjson", r"BACKUPS/\1.ndjson", text)


@pytest.mark.parametrize("output", ["text", "json"])
def test_rescue(run: Invoke, golden: Golden, output: str) -> None:
    end = "json" if output == "json" else "txt"
    plan = run("rescue", "--connector", "c", "--dry-run", "-o", output)
    golden(f"rescue/plan.{end}", without_paths(plan.stdout))
    result = run("rescue", "--connector", "c", "--yes", "-o", output)
    golden(f"rescue/result.{end}", without_paths(result.stdout))
    nothing = run("rescue", "--connector", "c", "--yes")
    golden("rescue/nothing.txt", nothing.stdout)
    assert [each.exit_code for each in (plan, result, nothing)] == [0, 0, 0]


@pytest.mark.parametrize("output", ["text", "json"])
def test_write(run: Invoke, scene: Scene, golden: Golden, output: str) -> None:
    stop(scene)
    end = "json" if output == "json" else "txt"
    plan = run("task-counts", "write", "c", "--count", "5", "--dry-run", "-o", output)
    golden(f"task-counts/write-plan.{end}", plan.stdout)
    result = run("task-counts", "write", "c", "--count", "5", "--yes", "-o", output)
    golden(f"task-counts/write-result.{end}", without_paths(result.stdout))
    nothing = run("task-counts", "write", "c", "--count", "5", "--yes", "-o", "json")
    assert [each.exit_code for each in (plan, result, nothing)] == [0, 0, 0]
    assert nothing.json()["data"]["rows"][0]["outcome"] == "unchanged"
    assert nothing.json()["data"]["summary"]["fences"] == 0  # was 1 where nothing was going to be fenced
    assert "Connect can do this itself" in plan.stderr


def test_write_takes_the_connector_as_other_commands_do(run: Invoke, scene: Scene) -> None:
    """`--connector` was no option of it: exit code 2, with a word about an argument that is missing."""
    stop(scene)
    count = ("--count", "5", "--dry-run")
    as_option = run("task-counts", "write", "--connector", "c", *count)
    assert (as_option.exit_code, as_option.stdout) == (0, run("task-counts", "write", "c", *count).stdout)
    for names in ((), ("c", "--connector", "c")):
        refused = run("task-counts", "write", *names, *count)
        assert (refused.exit_code, refused.stderr.splitlines()[0]) == (2, "error: name one connector")


def test_refusals_are_a_document_too(run: Invoke, scene: Scene) -> None:
    scene.connector.heal()
    for words in (("rescue", "--connector", "c"), ("task-counts", "write", "c", "--count", "1")):
        outcome = run(*words, "--yes", "-o", "json")
        assert outcome.exit_code == 6
        document = json.loads(outcome.stdout)
        assert (document["status"], document["errors"][0]["code"]) == ("refused", "refused")
        assert document["errors"][0]["hint"]


def dead_leader(scene: Scene) -> None:
    """The only worker is gone and the coordinator does not know it yet."""
    stop(scene)
    scene.connect.down |= set(scene.connect.modes)


def empty_group(scene: Scene) -> None:
    """The workers are stopped."""
    for url in list(scene.connect.modes):
        scene.connect.stop_worker(url)


def forgotten_group(scene: Scene) -> None:
    """The workers stopped long ago."""
    empty_group(scene)
    scene.time.sleep(scene.connect.forgotten_after_s)


def mistyped_group(scene: Scene) -> None:
    """The worker answers, and the group that was named is unknown."""
    stop(scene)
    scene.brokers.state.groups.clear()


def empty_group_and_a_worker(scene: Scene) -> None:
    """The worker answers, and the group that was named has no member."""
    stop(scene)
    scene.brokers.state.groups["g"] = RawGroup("g", "Empty", "connect", "", ())


def two_partitions(scene: Scene) -> None:
    scene.topics.topics.pop(CONFIGS)
    scene.topics.add_topic(CONFIGS, 2)


def no_topic(scene: Scene) -> None:
    scene.topics.topics.pop(CONFIGS)


WRITE, RESCUE = ("task-counts", "write", "c", "--count", "3"), ("rescue", "--connector", "c")
LIST, SHOW, VALIDATE = ("task-counts", "list"), ("task-counts", "show", "c"), ("task-counts", "validate")
REPLAY, WORKERS = ("task-counts", "replay", "--topic"), ("workers", "list")


@pytest.mark.parametrize(
    ("trouble", "words", "exit_code", "said"),
    [
        (dead_leader, WRITE, 4, "error: no worker says which tasks run: the Connect worker at http://w0:8083"),
        (dead_leader, RESCUE, 4, "error: no worker says which tasks run: the Connect worker at http://w0:8083"),
        (dead_leader, SHOW, 0, "warning: the Connect worker at http://w0:8083 can't be reached"),
        (dead_leader, VALIDATE, 7, "warning: the Connect worker at http://w0:8083 can't be reached"),
        (dead_leader, WORKERS, 4, "error: the Connect worker at http://w0:8083 can't be reached"),
        (empty_group, WRITE, 0, ""),
        (empty_group, RESCUE, 6, "error: the group g is Empty, so no task can be restarted; nothing was written"),
        (empty_group, LIST, 0, "warning: the group g has no worker to compare the topic with"),
        (empty_group, WORKERS, 0, ""),
        (empty_group_and_a_worker, WRITE, 6, "answers, but the group g has no member: it is of another group; nothing"),
        (empty_group_and_a_worker, LIST, 0, "warning: the worker at http://w0:8083 answers, but the group g has no"),
        (empty_group_and_a_worker, WORKERS, 0, "answers, while the group g has no member: it is of another group"),
        (forgotten_group, WRITE, 0, ""),
        (forgotten_group, RESCUE, 6, "error: the group g is Dead, so no task can be restarted; nothing was written"),
        (forgotten_group, LIST, 0, "warning: the coordinator has forgotten the group g: its workers stopped long ago"),
        (forgotten_group, WORKERS, 1, "error: the Connect group 'g' does not exist on this Kafka cluster"),
        (mistyped_group, WRITE, 1, "error: the worker at http://w0:8083 answers, but the Connect group 'g' does not"),
        (mistyped_group, RESCUE, 1, "error: the worker at http://w0:8083 answers, but the Connect group 'g' does not"),
        (mistyped_group, LIST, 1, "error: the worker at http://w0:8083 answers, but the Connect group 'g' does not"),
        (mistyped_group, WORKERS, 1, "error: the Connect group 'g' does not exist on this Kafka cluster"),
        *((two_partitions, words, 1, f"error: topic {CONFIGS} has 2 partitions; workers refuse a config topic")
          for words in (WRITE, RESCUE, LIST, SHOW, VALIDATE, REPLAY)),
        (two_partitions, WORKERS, 0, f"is not known: topic {CONFIGS} has 2 partitions"),
        *((no_topic, words, 1, f"error: there is no topic {CONFIGS}")
          for words in (WRITE, RESCUE, LIST, SHOW, VALIDATE, REPLAY)),
        (no_topic, WORKERS, 0, f"is not known: there is no topic {CONFIGS}"),
    ],
)  # fmt: skip
def test_troubles_have_their_message_and_exit_code(
    run: Invoke, scene: Scene, trouble: Callable[[Scene], None], words: tuple[str, ...], exit_code: int, said: str
) -> None:
    writes = words in (WRITE, RESCUE)
    trouble(scene)
    outcome = run(*words, *(["--yes"] if writes else []))
    assert outcome.exit_code == exit_code, outcome.stderr
    assert said in outcome.stderr
    assert exit_code == 0 or "  " in outcome.stderr, "a hint follows"
    written = [value for _id, value in scene.records()]
    assert written == ([b'{"task-count":3}'] if writes and exit_code == 0 else [])


@pytest.mark.parametrize("count", ["-1", "10001", "x"])
def test_an_impossible_count_is_a_usage_error(run: Invoke, count: str) -> None:
    assert run("task-counts", "write", "c", "--count", count).exit_code == 2
