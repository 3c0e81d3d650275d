"""The pages of `--report` as a browser shows them: dark, and light where there is little room."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.audit.browser.chromium import show
from tests.audit.happenings import a_task_that_moved, null_offsets
from tests.audit.log_scene import OUT, LogScene, run_on
from tests.conftest import Invoke
from tests.fakes.doctor_scene import cluster, doctor

LIGHT, DARK = (0xFF, 0xFF, 0xFF), (0x14, 0x18, 0x1E)
# committed, aborted and open in the timeline; the frame of the verdict
COLORS = {
    False: {(0x2F, 0x6F, 0xB3), (0xC2, 0x41, 0x0C), (0xA1, 0x62, 0x07), (0xB3, 0x26, 0x1E)},
    True: {(0x6A, 0xA7, 0xE8), (0xFB, 0x8A, 0x5C), (0xE0, 0xB0, 0x4A), (0xFF, 0x8D, 0x85)},
}


@pytest.fixture
def page(invoke: Invoke, tmp_path: Path) -> Path:
    """All kinds of transactions, and a topic's name that is markup."""
    scene = LogScene()
    null_offsets(scene)
    a_task_that_moved(scene)
    task = scene.task(1)
    task.commit()
    task.write(OUT, b"k", b"x")
    path = tmp_path / "page.html"
    assert run_on(scene, invoke)("--report", str(path)).exit_code == 3
    return path


def test_it_is_shown_in_the_dark(page: Path, tmp_path: Path) -> None:
    shown = show(page, tmp_path, dark=True, width=840, height=480)
    assert shown.said == [], "its console"
    assert shown.picture.getpixel((0, 0)) == DARK
    assert shown.colors() >= COLORS[True]


def test_a_narrow_window_has_nothing_at_its_right_edge(page: Path, tmp_path: Path) -> None:
    """The timeline's columns did not fit a phone, and were cut off."""
    shown = show(page, tmp_path, width=500, height=720)
    assert shown.said == []
    width, height = shown.picture.size
    assert shown.picture.crop((width - 1, 0, width, height)).getcolors() == [(height, LIGHT)]
    assert shown.colors() >= COLORS[False]


@pytest.mark.parametrize("dark", [False, True])
def test_any_report_fits_a_narrow_window(invoke: Invoke, tmp_path: Path, dark: bool) -> None:
    there = cluster()
    there.connect.connectors["orders"].fail(trace=f"java.lang.RuntimeException: {'x' * 500}")
    path = tmp_path / "doctor.html"
    assert doctor(invoke, there, "--report", str(path)).exit_code == 3
    shown = show(path, tmp_path, dark=dark, width=500, height=1400)
    assert shown.said == []
    width, height = shown.picture.size
    assert shown.picture.crop((width - 1, 0, width, height)).getcolors() == [(height, DARK if dark else LIGHT)]
    assert ((0xFF, 0x8D, 0x85) if dark else (0xB3, 0x26, 0x1E)) in shown.colors()
