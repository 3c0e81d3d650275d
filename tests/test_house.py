"""The script that measures the house counts what is there."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.house.__main__ import table
from benchmarks.house.lines import Walk
from benchmarks.house.source import measure_source
from tests.docstrings import is_imperative

ROOM = '''\
from dataclasses import dataclass
from typing import Any, NamedTuple
import msgspec


class Printed(msgspec.Struct):
    pass


class WriteRow(Printed):
    pass


class FenceRow(msgspec.Struct, frozen=True):
    pass


@dataclass(frozen=True)
class Owner:
    pass


class Place(NamedTuple):
    host: str

    @property
    def text(self) -> str:
        """The host."""
        return self.host


def write(what: Any) -> Any:
    """Write it."""
    if what:
        return _once(what) + _twice(what)
    return _twice(what)


def _once(what: Any) -> Any:
    """What it is."""
    return what


def _twice(what: Any) -> Any:
    return what
'''
WIRE = '''\
from typing import NamedTuple


class Frame(NamedTuple):
    def of(self) -> list[int]:
        """Returns its bytes."""
        return [number for number in range(3)]
'''


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {
        "eosctl/room.py": ROOM,
        "eosctl/wire/frames.py": WIRE,
        "commands/__init__.py": "",
        "tests/test_it.py": "\n\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_a_tree_is_measured(tree: Path) -> None:
    assert measure_source(tree) == {
        "lines of eosctl/ and commands/": ROOM.count("\n") + WIRE.count("\n"),
        "files": 3,
        "files under 80 lines, __init__.py aside": 2,
        "lines of a function, median": 3,
        "lines of a function, p90": 5,
        "lines of a function, most": 5,
        "makers of values": 2,  # a dataclass or two are where --help must not load msgspec
        "classes by @dataclass": 1,
        "classes by NamedTuple outside wire": 1,
        "classes by msgspec.Struct": 3,
        "different last words of class names": 5,
        "private functions of a module that are used once": 1,
        "functions of one plain statement": 4,
        "Any": 6,
        "docstrings of functions without an imperative": 2,
        "lines of tests/": 2,
    }


def test_a_walk_has_the_functions_of_the_tree(tree: Path) -> None:
    spec = importlib.util.spec_from_file_location("measured_frames", tree / "eosctl" / "wire" / "frames.py")
    assert spec is not None
    assert spec.loader is not None
    module, walk = importlib.util.module_from_spec(spec), Walk(tree)
    with walk.watching():
        spec.loader.exec_module(module)
    assert (walk.files(), walk.functions()) == (0, 0)
    with walk.watching():
        json.dumps(module.Frame().of())
    assert (walk.files(), walk.functions()) == (1, 1)


def test_a_goal_is_met_missed_or_not_measured() -> None:
    lines = table({"a": 1_000, "b": 3, "c": None, "d": 4}, {"a": 1_000, "b": 2, "c": 1}, {"d": 5})
    assert [line.split() for line in lines[1:]] == [
        ["a", "1,000", "1,000", "yes"],
        ["b", "3", "2", "no"],
        ["c", "not", "measured", "1", "?"],
        ["d", "5", "4"],
    ]


@pytest.mark.parametrize("docstring", ["Return it.", "Re-read it.", "List, or show, it."])
def test_a_verb_in_the_imperative_comes_first(docstring: str) -> None:
    assert is_imperative(docstring)


@pytest.mark.parametrize("docstring", ["Returns it.", "What it is.", "Readers of it.", "`read` as text.", "Reader's."])
def test_another_word_comes_first(docstring: str) -> None:
    assert not is_imperative(docstring)


def test_a_tree_is_measured_as_json(tree: Path) -> None:
    words = ["-m", "benchmarks.house", "--text-only", "--json", "--root", str(tree)]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["files"]["value"] == 3
