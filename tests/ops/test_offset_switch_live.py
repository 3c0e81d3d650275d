"""`offsets switch` on a real worker: to a topic of its own and back, with lines appended all the while."""

from __future__ import annotations

from collections import Counter

import pytest

from eosctl.core.client_settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.kafka.topic_store import KafkaTopicStore
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke, Outcome
from tests.sandbox_fixtures import FileSource, rest

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
