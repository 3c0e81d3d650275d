"""`offsets switch`, `set` and `reset` on a real worker: lines are counted, none may be lost or come twice unasked."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.records import OutRecord
from eosctl.deadline import Deadline
from eosctl.kafka.topics.store import KafkaTopicClient
from eosctl.sandbox.stack import Stack
from tests.audit.proven import assert_exactly_once
from tests.conftest import Invoke, Outcome
from tests.sandbox_fixtures import (
    GROUP,
    PAIR,
    PATIENCE_S,
    SLOW_SOURCE,
    FileSource,
    group_flags,
    has_ended,
    mirror_config,
    once_there,
    rest,
    slow_config,
    wait_until,
)

pytestmark = pytest.mark.live


def delivered(stack: Stack, topic: str, count: int = 0) -> Counter[bytes | None]:
    """How often each record was delivered, once `count` of them are there; none before there is the topic."""
    settings = ClientSettings(bootstrap_servers=(stack.bootstrap_servers,))
    with KafkaTopicClient(settings, deadline=Deadline.after(2 * PATIENCE_S)) as topics:

        def found() -> Counter[bytes | None]:
            there = topic in topics.describe([topic])
            return Counter(record.value for record in topics.read(topic).records) if there else Counter()

        return once_there(count, found)


def test_to_a_topic_of_its_own_and_back_no_line_is_lost_or_delivered_twice(
    stack: Stack, invoke: Invoke, target_flags: list[str], file_source: FileSource
) -> None:
    source, own = file_source, f"offsets-{file_source.name}"

    def switch(to: str) -> Outcome:
        words = ("offsets", "switch", "--connector", source.name, "--to", to, "--yes", "-o", "json")
        return invoke(*target_flags, *words)

    source.append("line 00000", "line 00001")
    source.put()
    source.wait_position(22)
    there = switch(own)
    assert there.exit_code == 0, there.stdout
    assert {row["outcome"] for row in there.json()["data"]["rows"]} == {"done"}
    source.append("line 00002")
    source.wait_position(33)
    back = switch("global")
    assert back.exit_code == 0, back.stdout
    assert "offsets.storage.topic" not in rest(f"{source.url}/connectors/{source.name}/config")
    source.append("line 00003")
    source.wait_position(44)
    again = switch(own)
    assert again.exit_code == 0, again.stdout
    source.append("line 00004")
    source.wait_position(55)
    lines = delivered(stack, source.topic, 5)
    assert (len(lines), set(lines.values())) == (5, {1})
    once_more = switch(own)
    assert (once_more.exit_code, once_more.json()["data"]["rows"]) == (0, []), "it is there already"
    assert_exactly_once(invoke, target_flags, source.name)


def test_offsets_are_not_put_where_they_do_not_belong(
    topics: KafkaTopicClient, invoke: Invoke, target_flags: list[str], file_source: FileSource, unique: str
) -> None:
    """A switch to the connector's own data topic left an offset in it for good; one to connect-configs said "done"."""
    source = file_source
    source.append("line 00000")
    source.put()
    source.wait_position(11)
    for name, policy in (("plain", "delete"), ("both", "compact,delete"), ("data", "compact")):
        topics.create(f"{name}-{unique}", partitions=2, replication_factor=1, config={"cleanup.policy": policy})
    topics.write([OutRecord(f"data-{unique}", b"user-%d" % number, b"{}") for number in range(4)])
    unfit = {
        source.topic: f"is where connector {source.name} writes its records (topic)",
        "connect-configs": "is the config topic of the group",
        "connect-status": "is the status topic of the group",
        "__transaction_state": "is a topic of Kafka itself",
        f"data-{unique}": "holds records that are not offsets: 4 of the newest 4",
        f"plain-{unique}": "is not compacted (cleanup.policy=delete)",
        f"both-{unique}": "also deletes (cleanup.policy=compact,delete)",
    }
    ours = [source.topic, *(f"{name}-{unique}" for name in ("plain", "both", "data"))]
    once_there(1, lambda: topics.read(source.topic).records)  # its marker is the last that comes
    before = topics.bounds_of(ours)
    line = json.dumps(
        {"topic": "x", "partition": 0, "key": json.dumps([source.name, {"filename": "f"}]), "value": "{}"}
    )
    for topic, why in unfit.items():
        switched = invoke(*target_flags, "offsets", "switch", "--connector", source.name, "--to", topic, "--yes")
        assert (switched.exit_code, f"topic {topic} {why}" in switched.stderr) == (6, True), switched.stderr
        imported = invoke(*target_flags, "offsets", "import", "-", "--store", topic, "--yes", input=line)
        assert (imported.exit_code, f"topic {topic} {why}" in imported.stderr) == (6, True), imported.stderr
    assert topics.bounds_of(ours) == before
    assert "offsets.storage.topic" not in rest(f"{source.url}/connectors/{source.name}/config")
    assert source.task_states() == ["RUNNING"]


@pytest.fixture
def mirror(stack: Stack, unique: str) -> Iterator[str]:
    """The name of a connector that a test makes; deleted afterwards."""
    yield unique
    url = stack.urls(GROUP)[0]
    if unique in rest(f"{url}/connectors"):
        rest(f"{url}/connectors/{unique}", "DELETE")


def test_reset_of_one_source_partition_reads_just_that_one_again(
    invoke: Invoke, target_flags: list[str], stack: Stack, mirror: str
) -> None:
    """A MirrorSource with a topic of its own and two tasks; its keys have three members, in HashMap order."""
    url, own, mirrored = stack.urls(GROUP)[0], f"offsets-{mirror}", f"A.src-{mirror}"
    settings = ClientSettings(bootstrap_servers=(stack.bootstrap_servers,))

    def counts() -> dict[int, int]:
        there = mirrored in topics.describe([mirrored])
        return dict(Counter(record.partition for record in topics.read(mirrored).records)) if there else {}

    with KafkaTopicClient(settings, deadline=Deadline.after(4 * PATIENCE_S)) as topics:
        topics.create(f"src-{mirror}", partitions=2, replication_factor=1, config={})
        topics.write([OutRecord(f"src-{mirror}", b"k", b"v", partition=n % 2) for n in range(6)])
        rest(
            f"{url}/connectors/{mirror}/config",
            "PUT",
            mirror_config(stack.bootstrap_servers, [f"src-{mirror}"], tasks=2),
        )
        wait_until(lambda: counts() == {0: 3, 1: 3}, what="both partitions to be mirrored")
        wait_until(lambda: len(rest(f"{url}/connectors/{mirror}/offsets")["offsets"]) == 2, what="both offsets")
        words = ["--connector", mirror, "--yes", "-o", "json"]
        moved = invoke(*target_flags, "offsets", "switch", *words, "--to", own)
        assert moved.exit_code == 0, moved.stdout
        rest(f"{url}/connectors/{mirror}/stop", "PUT")
        wait_until(lambda: has_ended(rest(f"{url}/connectors/{mirror}/status")), what="no task")
        partition = json.dumps({"topic": f"src-{mirror}", "partition": 1, "cluster": "A"})
        gone = invoke(*target_flags, "offsets", "reset", *words, "--partition", partition)
        assert gone.exit_code == 0, gone.stdout
        rest(f"{url}/connectors/{mirror}/resume", "PUT")
        wait_until(lambda: counts() == {0: 3, 1: 6}, what="partition 1 to be mirrored again")
        topics.write([OutRecord(f"src-{mirror}", b"k", b"v", partition=n) for n in range(2)])
        wait_until(lambda: counts() == {0: 4, 1: 7}, what="new records, once")

    def lacking() -> list[str]:
        """What would make the connector support exactly-once."""
        found = invoke(*target_flags, "connectors", "check", "--connector", mirror, "-o", "json").json()["data"]["rows"]
        return [row["fix"] for row in found if row["code"] == "not_supported"]

    assert "consumer.isolation.level=read_committed" in lacking()[0], "it said: ask the documentation"
    config = rest(f"{url}/connectors/{mirror}/config") | {"consumer.isolation.level": "read_committed"}
    rest(f"{url}/connectors/{mirror}/config", "PUT", config)
    wait_until(lambda: lacking() == [], what="the worker to tell the new config")


@pytest.mark.parametrize(
    ("verb", "steps"),
    [
        ("stop", ["stop", "merge", "configure", "check"]),
        ("pause", ["stop", "merge", "configure", "check", "resume", "watch"]),
    ],
)
def test_a_connector_that_does_not_run_is_left_as_it_was(
    invoke: Invoke,
    target_flags: list[str],
    file_source: FileSource,
    stack: Stack,
    verb: str,
    steps: list[str],
) -> None:
    """Stopped, a paused one has no tasks until it is resumed: they used to be waited for in vain."""
    file_source.append("line 00000")
    file_source.put()
    file_source.wait_position(11)
    if verb == "stop":
        file_source.stop_and_wait()
    else:
        file_source.set_state(verb)
        wait_until(lambda: file_source.task_states() == ["PAUSED"], what="the task to pause")
    own = f"offsets-{file_source.name}"
    done = invoke(*target_flags, "offsets", "switch", "--connector", file_source.name, "--to", own, "--yes")
    assert done.exit_code == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()[1 : len(steps) + 1]] == steps
    assert set(file_source.task_states()) <= {"UNASSIGNED"}
    file_source.set_state("resume")
    file_source.append("line 00001")
    file_source.wait_position(22)
    assert delivered(stack, file_source.topic, 2).total() == 2


def test_set_back_reads_the_tail_again_and_reset_reads_all_of_it(
    invoke: Invoke, target_flags: list[str], file_source: FileSource, stack: Stack
) -> None:
    """With exactly-once support and a dedicated topic, where the worker's own reset does not work."""
    own = f"offsets-{file_source.name}"
    partition = json.dumps({"filename": str(file_source.path)})
    file_source.append("line 00000", "line 00001", "line 00002")
    file_source.put(**{"offsets.storage.topic": own})
    file_source.wait_position(33)

    def edit(verb: str, *words: str) -> Any:
        file_source.stop_and_wait()
        which = ("--connector", file_source.name, "--partition", partition)
        return invoke(*target_flags, "offsets", verb, *which, *words, "--yes", "-o", "json").json()

    back = edit("set", "--offset", '{"position":11}')
    assert (back["exit_code"], back["data"]["via"], len(back["data"]["rows"])) == (0, "rest", 2), back["errors"]
    file_source.set_state("resume")
    delivered(stack, file_source.topic, 5)  # the tail is read again
    file_source.wait_position(33)
    assert delivered(stack, file_source.topic) == {b"line 00000": 1, b"line 00001": 2, b"line 00002": 2}

    gone = edit("reset")
    assert (gone["exit_code"], gone["data"]["via"]) == (0, "topic"), gone["errors"]
    assert [row["target"]["topic"] for row in gone["data"]["rows"]] == ["connect-offsets", own]
    assert rest(f"{file_source.url}/connectors/{file_source.name}/offsets") == {"offsets": []}
    file_source.set_state("resume")
    assert delivered(stack, file_source.topic, 8).total() == 8, "the whole file is read again"
    file_source.wait_position(33)

    here = edit("set", "--offset", '{"position":22}', "--via", "topic")
    assert here["exit_code"] == 0, here["errors"]
    [entry] = rest(f"{file_source.url}/connectors/{file_source.name}/offsets")["offsets"]
    assert entry["offset"] == {"position": 22}


def test_a_task_that_ends_slowly_delivers_each_record_once(pair: Stack, invoke: Invoke, unique: str) -> None:
    """Two workers, a task on each: REST said STOPPED without tasks seconds before the follower's last commit.

    That was not taken to the other topic, and the next task delivered its records again.
    """
    url, own, topic = pair.urls(PAIR)[0], f"offsets-{unique}", f"topic-{unique}"
    where = [*group_flags(pair, PAIR), "-u", url, "-o", "json"]

    def wait_for_batches() -> None:
        before = len(delivered(pair, topic))
        wait_until(lambda: len(delivered(pair, topic)) >= before + 10, what="a batch of each task")

    rest(f"{url}/connectors/{unique}/config", "PUT", slow_config(topic, tasks=2))
    try:
        for to in (own, "global"):
            wait_for_batches()
            moved = invoke(*where, "offsets", "switch", "--connector", unique, "--to", to, "--yes")
            assert moved.exit_code == 0, moved.stdout
            stopped = moved.json()["data"]["rows"][0]
            assert stopped["detail"] == "STOPPED, no task left, 2 ids of its tasks fenced"
        wait_for_batches()
        assert set(delivered(pair, topic).values()) == {1}
        assert_exactly_once(invoke, where, unique, "--offsets-topic", own)
    finally:
        rest(f"{url}/connectors/{unique}", "DELETE")


def test_the_slow_source_is_compiled_from_what_lies_beside_it() -> None:
    """No compiler is needed where the tests run: whoever changes the source has to make the jar anew."""
    with zipfile.ZipFile(SLOW_SOURCE / "slow-source.jar") as jar:
        for source in SLOW_SOURCE.glob("*.java"):
            assert jar.read(f"eosctl/tests/{source.name}") == source.read_bytes()
