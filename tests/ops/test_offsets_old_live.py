"""`offsets switch`, `merge` and `reset` on workers of Kafka 3.9.2: lines are counted, as on the newest version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eosctl.core.client_settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.kafka.topic_store import KafkaTopicStore
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke
from tests.sandbox_fixtures import GROUP, FileSource, rest, wait_until

pytestmark = pytest.mark.live

Eosctl = Callable[..., Any]


@pytest.fixture
def eosctl(old_stack: Stack, invoke: Invoke) -> Eosctl:
    """Runs `eosctl offsets …` against the old stack and returns the JSON envelope."""
    where = ["-b", old_stack.bootstrap_servers, "-u", old_stack.urls(GROUP)[0], "-g", GROUP]
    return lambda *words: invoke(*where, "offsets", *words, "-o", "json").json()


@pytest.fixture
def source(old_stack: Stack, tmp_path: Path, unique: str) -> Iterator[FileSource]:
    """A connector that has delivered ten lines of eleven bytes each, and said so in the global topic."""
    path = tmp_path / f"{unique}.txt"
    path.write_text("".join(f"line {number:05d}\n" for number in range(10)))
    source = FileSource(url=old_stack.urls(GROUP)[0], name=unique, path=path, topic=f"topic-{unique}")
    source.put()
    source.wait_position(110)
    yield source
    rest(f"{source.url}/connectors/{source.name}", "DELETE")


def delivered(stack: Stack, source: FileSource) -> Counter[bytes | None]:
    settings = ClientSettings(bootstrap_servers=(stack.bootstrap_servers,))
    with KafkaTopicStore(settings, deadline=Deadline.after(60)) as topics:
        return Counter(record.value for record in topics.read(source.topic).records)


def test_without_a_merge_everything_is_delivered_again(old_stack: Stack, source: FileSource) -> None:
    """What Kafka does, against its documentation."""
    source.put(**{"offsets.storage.topic": f"offsets-{source.name}"})
    wait_until(lambda: delivered(old_stack, source).total() == 20, what="the file to be read again")
    assert set(delivered(old_stack, source).values()) == {2}


def test_with_switch_nothing_is_lost_or_delivered_twice_and_reset_reads_all_again(
    old_stack: Stack, eosctl: Eosctl, source: FileSource
) -> None:
    which = ("--connector", source.name)
    moved = eosctl("switch", *which, "--to", f"offsets-{source.name}", "--yes")
    assert moved["exit_code"] == 0, moved["errors"]
    source.append("line 00010", "line 00011")
    source.wait_position(132)
    lines = delivered(old_stack, source)
    assert (len(lines), set(lines.values())) == (12, {1})

    source.stop_and_wait()
    gone = eosctl("reset", *which, "--all-partitions", "--yes")
    assert (gone["exit_code"], gone["data"]["via"]) == (0, "topic"), gone["errors"]
    assert rest(f"{source.url}/connectors/{source.name}/offsets") == {"offsets": []}
    assert eosctl("verify", gone["data"]["backup"])["exit_code"] == 0
    source.set_state("resume")
    wait_until(lambda: delivered(old_stack, source).total() == 24, what="the whole file to be read again")
