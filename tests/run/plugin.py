"""A pytest plugin: writes what is collected and what becomes of each test, as it happens, for the runner to judge.

The file has one JSON object a line: `{"left_out": [test]}` once where marks leave tests out, `{"collected": [{"test",
"marks", "stacks"}]}` once, then `{"test", "when", "outcome", "duration_s"}` per phase of a test.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

_KINDS = ("live", "spark")


class _Writer:
    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def _write(self, entry: Mapping[str, object]) -> None:
        self._file.write(json.dumps(entry) + "\n")
        self._file.flush()

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """What is slow is for no part at all (tests/conftest.py)."""
        self._write({"left_out": [item.nodeid for item in items if not item.get_closest_marker("slow")]})

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._write({"collected": [_described(item) for item in session.items]})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        entry = {"test": report.nodeid, "when": report.when, "outcome": report.outcome}
        self._write({**entry, "duration_s": round(report.duration, 3)})


def _described(item: pytest.Item) -> dict[str, object]:
    marks = [kind for kind in _KINDS if item.get_closest_marker(kind)]
    return {"test": item.nodeid, "marks": marks, "stacks": sorted({*_session_fixtures(item), *_asked_for(item)})}


def _session_fixtures(item: pytest.Item) -> Iterator[str]:
    """The session fixtures of these tests among those that the item asks for, directly or through others."""
    definitions = getattr(item, "_fixtureinfo").name2fixturedefs  # noqa: B009 - pytest has no public name for it
    for name, found in definitions.items():
        if found[-1].scope == "session" and found[-1].func.__module__.startswith("tests."):
            yield name


def _asked_for(item: pytest.Item) -> Iterator[str]:
    """Those that it asks for at run time, and names by `pytest.mark.on`."""
    for mark in item.iter_markers("on"):
        yield from mark.args


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--outcomes", metavar="FILE", help="append what is collected and what becomes of each test")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--outcomes")
    if path:
        config.pluginmanager.register(_Writer(Path(path)), "outcomes")
