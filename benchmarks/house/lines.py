"""What command lines do in the tests' world of canaries: which functions they enter, what they ask brokers for."""

from __future__ import annotations

import inspect
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from benchmarks.house.source import TOPS
from tests.command_lines import LINES, Line, count_connects, prepare, run_line
from tests.conftest import Invoke, invoke_in
from tests.fakes.broker import THREADS
from tests.fakes.canaries import World, canary_world
from tests.fakes.config_topic import CONFIG_TOPIC
from tests.fakes.faults import Call

ROOT = Path(__file__).resolve().parents[2]
WALKED = ("fence --connector", "doctor", "offsets merge")
ASKING = (*WALKED, "rescue", "upgrade apply", "task-counts write")


class Walk:
    """A profiler that notes which functions below `root` are entered, those of the fake brokers' threads aside."""

    def __init__(self, root: Path) -> None:
        self._tops = tuple(f"{root / top}{os.sep}" for top in TOPS)
        self._entered = set[tuple[str, str, int]]()

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        """Note a call, as `sys.setprofile` gives it; the bodies of modules and classes are no functions."""
        code = frame.f_code
        if (
            event == "call"
            and code.co_flags & inspect.CO_OPTIMIZED
            and code.co_filename.startswith(self._tops)
            and threading.current_thread().name != THREADS
        ):
            self._entered.add((code.co_filename, code.co_name, code.co_firstlineno))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Note what this thread, and those that it starts, enter meanwhile."""
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def files(self) -> int:
        """Count the files of which a function was entered."""
        return len({file for file, _name, _line in self._entered})

    def functions(self) -> int:
        """Count the functions that were entered, lambdas and comprehensions aside."""
        return sum(not name.startswith("<") for _file, name, _line in self._entered)


def measure_lines(root: Path = ROOT) -> dict[str, int]:
    """Run the command lines in the tests' world and return their measures, by what each is called in the table."""
    found = dict[str, int]()
    for name in ASKING:
        line = next(line for line in LINES if line.text.startswith(name))
        with _prepared(line) as (invoke, world):
            reads = list[Call]()
            world.topics.before("read", reads.append)
            found[f"TCP connects of {name}"] = count_connects(invoke, world, line).total()
            found[f"whole reads of the config topic by {name}"] = sum(CONFIG_TOPIC in call.what for call in reads)
        if name in WALKED:  # in another world, for the first run has loaded modules
            walk = Walk(root)
            with _prepared(line) as (invoke, world), walk.watching():
                run_line(invoke, world, line, output="text")
            found[f"files entered by {name}"] = walk.files()
            found[f"functions entered by {name}"] = walk.functions()
    return found


@contextmanager
def _prepared(line: Line) -> Iterator[tuple[Invoke, World]]:
    """Give a world of its own to a line, and what runs it there."""
    with tempfile.TemporaryDirectory() as name, canary_world(Path(name)) as world:
        invoke = invoke_in(Path(name))
        prepare(invoke, world, line)
        yield invoke, world
