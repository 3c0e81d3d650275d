"""Connectors whose offsets were migrated, on a real worker: switched and resumed, they deliver every line once.

The migration runs as a process of its own, as a person runs it; the offsets stay Connect's own from end to end.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from eosctl.core.clients.settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.kafka.topics.store import KafkaTopicClient
from eosctl.sandbox.stack import Stack
from tests.audit.proven import assert_exactly_once
from tests.conftest import Invoke
from tests.migrate.spark.warm_jvm import WarmJvm
from tests.sandbox_fixtures import GROUP, PATIENCE_S, FileSource, once_there, rest

pytestmark = [pytest.mark.live, pytest.mark.spark]

PROPERTY = "offsets.storage.topic"
BATCH = 500


def lines(batch: int) -> list[str]:
    return [f"line {number:05d}" for number in range(batch * BATCH, (batch + 1) * BATCH)]


def length(batches: int) -> int:
    """Bytes of so many batches in a file."""
    return batches * BATCH * len("line 00000\n")


@pytest.fixture
def sources(stack: Stack, tmp_path: Path, unique: str) -> Iterator[list[FileSource]]:
    """Four connectors on the global offsets topic, not created yet; also `new…` in place of `old…` goes afterwards."""
    url = stack.urls(GROUP)[0]
    names = [f"a-b-{unique}", f"plain{unique}", f"bare{unique}", f"old{unique}"]
    yield [FileSource(url, name, tmp_path / f"{name}.txt", f"topic-{name}") for name in names]
    for name in {*names, f"new{unique}"} & set(rest(f"{url}/connectors")):
        rest(f"{url}/connectors/{name}", "DELETE")


def test_switched_after_the_migration_every_line_comes_once(
    stack: Stack, sources: list[FileSource], unique: str, tmp_path: Path, invoke: Invoke, target_flags: list[str],
    warm: WarmJvm,
) -> None:  # fmt: skip
    """Two by `offsets switch`, one by its config alone, and one under another name; stopped while lines came in."""
    for source in sources:
        source.append(*lines(0))
        source.put()
    for source in sources:
        source.wait_position(length(1))
    for source in sources:
        source.append(*lines(1))
        source.set_state("stop")
    for source in sources:
        source.stop_and_wait()

    pattern = f"own-{unique}-{{connector}}"
    names = [word for source in sources for word in ("--connector", source.name)]
    migrated = offsets_migrate(
        *(*target_flags, *names, "--rename", f"old{unique}=new{unique}", "--dedicated-topic", pattern),
        environ={**warm.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
    )
    assert migrated["counts"] == {"write": len(sources), "delete": 0, "keep": 0, "conflict": 0}
    assert migrated["verified"] == len(sources)

    dashed, plain, bare, old = sources
    for source in (dashed, plain):
        own = pattern.replace("{connector}", source.name)
        words = ("offsets", "switch", "--connector", source.name, "--to", own, "--yes", "-o", "json")
        switched = invoke(*target_flags, *words)
        assert switched.exit_code == 0, switched.stdout
        assert [(write["action"], write["reason"]) for write in switched.json()["data"]["writes"]] == [
            ("keep", "equal")
        ]
        source.set_state("resume")
    bare.put(**{PROPERTY: pattern.replace("{connector}", bare.name)})
    bare.set_state("resume")
    rest(f"{old.url}/connectors/{old.name}", "DELETE")
    new = FileSource(old.url, f"new{unique}", old.path, old.topic)
    new.put(**{PROPERTY: pattern.replace("{connector}", new.name)})

    for source in (dashed, plain, bare, new):
        source.append(*lines(2))
        source.wait_position(length(3))
        found = once_there(3 * BATCH, partial(delivered, stack, source))
        assert found == [*lines(0), *lines(1), *lines(2)]
        assert_exactly_once(invoke, target_flags, source.name)


def offsets_migrate(*words: str, environ: Mapping[str, str]) -> Any:
    """The summary of `offsets migrate WORDS… --yes`."""
    command = [
        sys.executable,
        "-m",
        "eosctl",
        "offsets",
        "migrate",
        *words,
        "--yes",
        "--timeout",
        "300s",
        "-o",
        "json",
        "--master",
        "local[2]",
    ]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)["data"]["summary"]


def delivered(stack: Stack, source: FileSource) -> list[str]:
    """The committed values of its topic, sorted."""
    with KafkaTopicClient(ClientSettings((stack.bootstrap_servers,)), deadline=Deadline.after(PATIENCE_S)) as topics:
        return sorted((record.value or b"").decode() for record in topics.read(source.topic).records)
