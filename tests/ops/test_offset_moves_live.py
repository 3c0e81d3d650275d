"""`offsets switch`, `set` and `reset` on a real worker: lines are counted, none may be lost or come twice unasked."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from eosctl.core.client_settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.kafka.topic_store import KafkaTopicStore
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke, Outcome
from tests.sandbox_fixtures import FileSource, rest, wait_until

pytestmark = pytest.mark.live


def delivered(stack: Stack, source: FileSource) -> Counter[bytes | None]:
    settings = ClientSettings(bootstrap_servers=(stack.bootstrap_servers,))
    with KafkaTopicStore(settings, deadline=Deadline.after(60)) as topics:
        return Counter(record.value for record in topics.read(source.topic).records)


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
    lines = delivered(stack, source)
    assert (len(lines), set(lines.values())) == (5, {1})
    assert switch(own).exit_code == 6


def test_a_stopped_connector_stays_stopped(
    invoke: Invoke, target_flags: list[str], file_source: FileSource, stack: Stack
) -> None:
    file_source.append("line 00000")
    file_source.put()
    file_source.wait_position(11)
    file_source.stop_and_wait()
    own = f"offsets-{file_source.name}"
    done = invoke(*target_flags, "offsets", "switch", "--connector", file_source.name, "--to", own, "--yes")
    assert done.exit_code == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()[1:5]] == ["stop", "merge", "configure", "check"]
    assert file_source.task_states() == []
    file_source.set_state("resume")
    file_source.append("line 00001")
    file_source.wait_position(22)
    assert delivered(stack, file_source).total() == 2


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
    wait_until(lambda: delivered(stack, file_source).total() == 5, what="the tail to be read again")
    file_source.wait_position(33)
    assert delivered(stack, file_source) == {b"line 00000": 1, b"line 00001": 2, b"line 00002": 2}

    gone = edit("reset")
    assert (gone["exit_code"], gone["data"]["via"]) == (0, "topic"), gone["errors"]
    assert [row["target"]["topic"] for row in gone["data"]["rows"]] == ["connect-offsets", own]
    assert rest(f"{file_source.url}/connectors/{file_source.name}/offsets") == {"offsets": []}
    file_source.set_state("resume")
    wait_until(lambda: delivered(stack, file_source).total() == 8, what="the whole file to be read again")
    file_source.wait_position(33)

    here = edit("set", "--offset", '{"position":22}', "--via", "topic")
    assert here["exit_code"] == 0, here["errors"]
    [entry] = rest(f"{file_source.url}/connectors/{file_source.name}/offsets")["offsets"]
    assert entry["offset"] == {"position": 22}
