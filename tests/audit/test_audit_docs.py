"""docs/how-to/prove-exactly-once.md: what it shows is what the command prints, case by case."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.audit.happenings import (
    a_task_that_moved,
    another_connector,
    null_offsets,
    numbered,
    plain_writes,
)
from tests.audit.log_scene import MIRRORED, SOURCE, LogScene, mirror, mirror_scene, run_on
from tests.audit.test_source_partitions import a_task_of_before
from tests.audit.test_whole_transactions import output_part_aborted
from tests.conftest import Invoke

DOCS = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "prove-exactly-once.md"
BLOCK = re.compile(r"```console\n\$ eosctl audit (.*?)\n(.*?)```", re.DOTALL)


def honest(scene: LogScene) -> None:
    scene.task().commit(b"a", b"b")
    a_task_that_moved(scene)
    another_connector(scene)


def forgotten(scene: LogScene) -> None:
    scene.task().commit()
    stranger = scene.task()
    stranger.transactional_id = "etl-7"
    stranger.start().commit(key=b"")


def twice(scene: LogScene) -> None:
    numbered(scene, 1, 2, 2, 5)


def mirrored(scene: LogScene) -> None:
    for _ in range(4):
        scene.plain(SOURCE, b"k", b"v")
    task = scene.task(0, "m")
    mirror(task, 1, 2)
    mirror(task, 3, 1)


SCENES: tuple[tuple[Callable[[], LogScene], Callable[[LogScene], None]], ...] = (
    (LogScene, honest),
    (LogScene, null_offsets),
    (LogScene, plain_writes),
    (LogScene, output_part_aborted),
    (LogScene, a_task_of_before),
    (LogScene, forgotten),
    (LogScene, twice),
    (mirror_scene, mirrored),
)


@pytest.mark.parametrize("number", range(len(SCENES)))
def test_the_cases_of_the_page_are_what_is_printed(invoke: Invoke, number: int) -> None:
    blocks = BLOCK.findall(DOCS.read_text(encoding="utf-8"))
    assert len(blocks) == len(SCENES)
    make, happens = SCENES[number]
    scene = make()
    happens(scene)
    command, shown = blocks[number]
    words = shlex.split(command)
    done = run_on(scene, invoke)(*words)
    assert done.stdout + f"(exit code {done.exit_code})\n" == shown
    assert MIRRORED not in command
