"""`connectors create` and `apply` on a real worker and broker: which lines are delivered, and which are not."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eosctl.core.clients.settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.kafka.topics.store import KafkaTopicClient
from eosctl.sandbox.stack import Stack
from tests.audit.proven import assert_exactly_once
from tests.conftest import Invoke, Outcome
from tests.sandbox_fixtures import PATIENCE_S, FileSource, once_there, rest, wait_until

pytestmark = pytest.mark.live
FIRST, SECOND, THIRD = ["line 00000", "line 00001"], ["line 00002", "line 00003"], ["line 00004"]
BEHIND_FIRST = 22
"""The position behind two lines: FileStream counts bytes."""


def delivered(stack: Stack, topic: str, count: int = 0) -> Counter[str]:
    """How often each line was delivered, once `count` of them are there."""
    settings = ClientSettings(bootstrap_servers=(stack.bootstrap_servers,))
    with KafkaTopicClient(settings, deadline=Deadline.after(2 * PATIENCE_S)) as topics:

        def found() -> Counter[str]:
            records = topics.read(topic).records if topic in topics.describe([topic]) else ()
            return Counter((record.value or b"").decode() for record in records)

        return once_there(count, found)


@pytest.fixture
def source(file_source: FileSource) -> Iterator[FileSource]:
    yield file_source
    names = rest(f"{file_source.url}/connectors")
    for name in (file_source.name, f"{file_source.name}-b"):
        if name in names and name != file_source.name:
            rest(f"{file_source.url}/connectors/{name}", "DELETE")


@pytest.fixture
def connectors(invoke: Invoke, target_flags: list[str]) -> Callable[..., Outcome]:
    return lambda *words: invoke("connectors", *words, *target_flags, "--yes", "-o", "json", "--timeout", "120s")


def written(path: Path, document: Any) -> str:
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)


def body(source: FileSource, position: int) -> Any:
    return {"offsets": [{"partition": {"filename": str(source.path)}, "offset": {"position": position}}]}


def test_it_delivers_exactly_the_lines_behind_its_offset(
    stack: Stack,
    invoke: Invoke,
    target_flags: list[str],
    connectors: Callable[..., Outcome],
    source: FileSource,
    tmp_path: Path,
) -> None:
    source.append(*FIRST, *SECOND)
    file = written(tmp_path / "c.json", {"name": source.name, "config": source.config()})
    offsets = written(tmp_path / "offsets.json", body(source, BEHIND_FIRST))
    done = connectors("create", file, "--offsets", offsets)
    assert done.exit_code == 0, done.stdout
    assert {row["outcome"] for row in done.json()["data"]["rows"]} == {"done"}
    source.append(*THIRD)
    source.wait_position(55)
    assert delivered(stack, source.topic, 3) == Counter([*SECOND, *THIRD])
    assert_exactly_once(invoke, target_flags, source.name)
    again = connectors("create", file, "--offsets", offsets)
    assert (again.exit_code, again.json()["errors"][0]["code"]) == (6, "refused")


def test_it_goes_on_where_another_connector_stopped(
    stack: Stack, connectors: Callable[..., Outcome], source: FileSource, tmp_path: Path
) -> None:
    """With a topic of its own, under another name."""
    source.append(*FIRST)
    source.put()
    source.wait_position(BEHIND_FIRST)
    name = f"{source.name}-b"
    config = {**source.config(), "offsets.storage.topic": f"offsets-{name}"}
    file = written(tmp_path / "c.json", {"name": name, "config": config})
    assert connectors("create", file, "--offsets", source.name).exit_code == 6, "it runs"
    source.stop_and_wait()
    source.append(*SECOND)
    done = connectors("create", file, "--offsets", source.name, "--stopped")
    assert done.exit_code == 0, done.stdout
    status = rest(f"{source.url}/connectors/{name}/status")
    assert (status["connector"]["state"], status["tasks"]) == ("STOPPED", [])
    assert rest(f"{source.url}/connectors/{name}/offsets") == body(source, BEHIND_FIRST)
    assert connectors("resume", name).exit_code == 0
    assert delivered(stack, source.topic, 4) == Counter([*FIRST, *SECOND])


def test_a_config_that_connect_rejects_makes_no_connector(
    connectors: Callable[..., Outcome], source: FileSource, tmp_path: Path
) -> None:
    file = written(tmp_path / "c.json", {"name": source.name, "config": {**source.config(), "tasks.max": "none"}})
    done = connectors("create", file)
    assert (done.exit_code, source.name in rest(f"{source.url}/connectors")) == (6, False)
    assert "tasks.max" in done.json()["errors"][0]["message"]


def test_apply_changes_what_is_harmless_and_refuses_another_file(
    stack: Stack, connectors: Callable[..., Outcome], source: FileSource, tmp_path: Path
) -> None:
    source.append(*FIRST)
    file = written(tmp_path / "c.json", {"name": source.name, "config": source.config()})
    assert connectors("apply", file).json()["kind"] == "connectors-create-result"
    source.wait_position(BEHIND_FIRST)
    unchanged = connectors("apply", file)
    assert (unchanged.exit_code, unchanged.json()["data"]["rows"]) == (0, [])
    more = connectors("apply", file, "--set", "tasks.max=2")
    assert more.exit_code == 0, more.stdout
    assert rest(f"{source.url}/connectors/{source.name}/config")["tasks.max"] == "2"
    other = tmp_path / "other.txt"
    other.write_text("not asked for\n", encoding="utf-8")
    refused = connectors("apply", file, "--set", f"file={other}")
    assert refused.exit_code == 6, refused.stdout
    assert rest(f"{source.url}/connectors/{source.name}/config")["file"] == str(source.path)
    source.append(*SECOND)
    source.wait_position(44)
    assert delivered(stack, source.topic, 4) == Counter([*FIRST, *SECOND])
    over = connectors("apply", file, "--set", f"file={other}", "--read-again")
    assert (over.exit_code, {each["code"] for each in over.json()["errors"]} >= {"all_partitions_new"}) == (3, True)
    wait_until(lambda: delivered(stack, source.topic)["not asked for"] == 1, what="the other file")
