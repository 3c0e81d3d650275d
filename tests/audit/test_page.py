"""The page of `audit --report`: whole, escaped, of one piece, and with a line for each task."""

from __future__ import annotations

import os
import re
import stat
from errno import ENOSPC
from html.parser import HTMLParser
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.audit.happenings import a_task_that_moved, null_offsets
from tests.audit.log_scene import KEY, OUT, LogScene, run_on
from tests.audit.test_whole_transactions import output_part_aborted
from tests.conftest import Invoke

VOID = {"meta", "br", "hr", "img", "link", "input"}
NASTY = '<img src=x onerror="alert(1)">'


class Page(HTMLParser):
    """Its elements in order, the text, and whether every element that begins ends."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def of(self, tag: str, state: str | None = None) -> list[dict[str, str | None]]:
        return [
            found for name, found in self.elements if name == tag and (state is None or found.get("class") == state)
        ]


def made(scene: LogScene, invoke: Invoke, path: Path) -> str:
    done = run_on(scene, invoke)("--report", str(path))
    assert f"file: {path}" in done.stdout
    return path.read_text(encoding="utf-8")


def test_a_page_shows_what_the_audit_found(invoke: Invoke, tmp_path: Path) -> None:
    scene = LogScene()
    null_offsets(scene)
    a_task_that_moved(scene)
    task = scene.task(1)
    task.commit()
    task.write(OUT, b"k", b"x")
    text = made(scene, invoke, tmp_path / "page.html")
    page = Page(text)
    assert page.open == []
    assert "not exactly once" in page.texts
    assert [each for each in page.texts if each in ("g-c-0", "g-c-1")][:2] == ["g-c-0", "g-c-1"], "a line per task"
    assert len(page.of("svg")) == 2
    assert len(page.of("rect", "aborted")) == 1
    assert len(page.of("rect", "open")) == 1
    assert "transaction_without_offsets" in page.texts
    assert "Every batch of the window was there." in page.texts
    assert stat.S_IMODE((tmp_path / "page.html").stat().st_mode) == 0o600


def test_a_page_refers_to_nothing_outside(invoke: Invoke, tmp_path: Path) -> None:
    """Evidence is filed, mailed and opened where there is no network."""
    scene = LogScene()
    null_offsets(scene)
    text = made(scene, invoke, tmp_path / "page.html")
    page = Page(text)
    assert not {"script", "link", "img", "iframe", "object", "base"} & {tag for tag, _attributes in page.elements}
    assert not [found for _tag, found in page.elements if {"src", "href", "srcset", "xlink:href"} & found.keys()]
    assert not re.search(r"https?:|url\(|@import|javascript:", text)
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text


def test_what_topics_and_connectors_are_called_is_no_markup(invoke: Invoke, tmp_path: Path) -> None:
    scene = LogScene()
    scene.connect.add(NASTY, {"topic": OUT})
    task = scene.task(0, NASTY)
    task.commit(key=b"")
    task.commit(key=KEY)
    path = tmp_path / "page.html"
    run_on(scene, invoke)("--report", str(path), "--connector", NASTY, "--topic", OUT)
    text = path.read_text(encoding="utf-8")
    assert NASTY not in text
    assert not Page(text).of("img")
    assert f"Audit of connector {NASTY}" in "".join(Page(text).texts)


def test_a_page_is_there_whole_or_not_at_all(invoke: Invoke, tmp_path: Path) -> None:
    scene = LogScene()
    null_offsets(scene)
    done = run_on(scene, invoke)("--report", str(tmp_path / "nowhere" / "page.html"))
    assert done.exit_code != 0
    assert "page.html" in done.stderr
    kept = tmp_path / "page.html"
    kept.mkdir()
    assert run_on(scene, invoke)("--report", str(kept)).exit_code == 2
    assert list(tmp_path.rglob("*.new")) == []


@pytest.mark.parametrize("transactions", [1, 700])
def test_a_page_does_not_grow_with_the_log(invoke: Invoke, tmp_path: Path, transactions: int) -> None:
    """A bar per transaction would make a page that no browser opens."""
    scene = LogScene()
    task = scene.task()
    for _ in range(transactions):
        task.commit()
    text = made(scene, invoke, tmp_path / "page.html")
    assert f"{transactions:,} committed" in text
    assert len(Page(text).of("rect")) <= 500


def test_a_page_of_nothing(invoke: Invoke, tmp_path: Path) -> None:
    text = made(LogScene(), invoke, tmp_path / "page.html")
    assert "unproven" in Page(text).texts
    assert not Page(text).of("svg")


def test_a_page_that_can_not_be_written_does_not_lose_the_result(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an hour of reading nothing was printed but that there is no such directory."""
    scene = LogScene()
    scene.task().commit()
    monkeypatch.setattr(os, "fsync", Mock(side_effect=OSError(ENOSPC, "No space left on device")))
    done = run_on(scene, invoke)("-o", "json", "--report", str(tmp_path / "page.html"))
    document = done.json()
    (found,) = document["data"]["connectors"]
    assert (found["verdict"], document["data"].get("file"), done.exit_code) == ("exactly_once", None, 7)
    assert "page.html" in document["errors"][-1]["message"]


def test_a_page_in_a_directory_that_there_is_not_is_refused_before_anything_is_read(
    invoke: Invoke, tmp_path: Path
) -> None:
    scene = LogScene()
    scene.task().commit()
    scene.batches.fail_always("plan", AssertionError("nothing may be read"))
    done = run_on(scene, invoke)("--report", str(tmp_path / "no" / "page.html"))
    assert (done.exit_code, f"there is no directory {tmp_path / 'no'}" in done.stderr) == (2, True)


def test_a_torn_transaction_is_shown_as_what_it_is(invoke: Invoke, tmp_path: Path) -> None:
    """It was counted among the aborted ones."""
    scene = LogScene()
    output_part_aborted(scene)
    page = Page(made(scene, invoke, tmp_path / "audit.html"))
    assert (len(page.of("rect", "torn")), len(page.of("rect", "open"))) == (1, 0)
    assert "transaction_torn" in "".join(page.texts)
