"""Parts of a run: child processes side by side, each with a limit, and what is wrong with each.

Nothing that a part does can make it look green: a signal, a hang, an exit before the last test, no test at all, a skip
and a process of the sandbox that is left behind are faults as a failed assertion is.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from eosctl.sandbox.stack import Stack
from tests.run.outcomes import Outcomes, read_outcomes
from tests.run.room import Room

ROOT = Path(__file__).resolve().parent.parent.parent
_POLL_S = 0.05
_GRACE_S = 30.0  # after SIGINT: pytest's fixtures stop their brokers and workers
_NICENESS = 10  # of a part that gives way: a tenth of what others get, where all could use more


@dataclass(frozen=True, slots=True)
class Part:
    """A command of the run, `python -m COMMAND`, that may take `limit_s` seconds.

    A pytest must have an outcome for each test that it collects, and collect `tests` (node ids), where they are given.
    What is no pytest is judged by its exit code. One that `gives_way` gets the processors when the others wait.
    """

    name: str
    command: tuple[str, ...]
    limit_s: float
    tests: tuple[str, ...] = ()
    gives_way: bool = False

    @property
    def is_pytest(self) -> bool:
        """Whether it runs tests, or only collects them."""
        return self.command[0] == "pytest"

    def words(self, folder: Path) -> list[str]:
        """The whole command line; `folder` is the part's own."""
        words = [sys.executable, "-m", *self.command]
        if self.is_pytest:
            words += ["-p", "tests.run.plugin", f"--outcomes={_outcomes_file(folder)}", f"--basetemp={folder / 'tmp'}"]
        if self.tests:
            (folder / "arguments").write_text("".join(f"{test}\n" for test in self.tests), encoding="utf-8")
            words.append(f"@{folder / 'arguments'}")
        return words


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a part; it is green when it has no faults.

    `cpu_s` is the CPU time of its process, and of every process below it that was waited for.
    """

    part: Part
    seconds: float
    output: str
    faults: tuple[str, ...]
    outcomes: Outcomes = field(default_factory=Outcomes)
    cpu_s: float = 0.0


@dataclass(slots=True)
class _Running:
    part: Part
    folder: Path
    process: subprocess.Popen[bytes]
    started_s: float
    stopped_s: float | None = None  # when it was told to stop
    cpu_s: float = 0.0  # known when it has ended

    def advance(self, now_s: float) -> bool:
        """Whether it has ended; one that is past its limit is interrupted, and then killed."""
        before_s = _cpu_of_ended_s()
        if self.process.poll() is not None:
            self.cpu_s += _cpu_of_ended_s() - before_s
            return True
        if self.stopped_s is None and now_s - self.started_s > self.part.limit_s:
            self.stop(now_s)
        elif self.stopped_s is not None and now_s - self.stopped_s > _GRACE_S:
            _signal(self.process, signal.SIGKILL)
        return False

    def stop(self, now_s: float) -> None:
        self.stopped_s = now_s
        _signal(self.process, signal.SIGINT)


def run_parts(
    parts: Sequence[Part],
    folder: Path,
    *,
    at_once: int,
    at_most: int = 0,
    beside: int = 0,
    follow: Callable[[Result], Sequence[Part]] = lambda _result: (),
) -> list[Result]:
    """Runs `parts` in this order, `at_once` side by side, each in a process group of its own below `folder`.

    There are more, up to `at_most`, while processors are idle (`Room`).

    Of those that give way `beside` run beside the others, with a lower priority unless `at_once` is 0. `follow` is told
    of each that ends, and answers with the parts that come next. Whatever goes wrong here, Ctrl-C included, no part is
    left running.
    """
    waiting, running, done = list(parts), list[_Running](), list[Result]()
    room = Room(at_once, max(at_once, at_most))
    try:
        while waiting or running:
            for part in _those_with_room(waiting, running, room, beside=beside):
                waiting.remove(part)
                niceness = _NICENESS if part.gives_way and at_once else 0
                running.append(_start(part, folder / f"part-{len(done) + len(running)}", niceness=niceness))
            ended = [each for each in running if each.advance(time.monotonic())]
            for each in ended:
                running.remove(each)
                done.append(_judge(each))
                waiting[:0] = follow(done[-1])
            if not ended:
                time.sleep(_POLL_S)
    finally:
        _end(running)
    return done


def _those_with_room(
    waiting: Sequence[Part], running: Sequence[_Running], room: Room, *, beside: int
) -> Iterator[Part]:
    """The parts that start now: the first of each kind, as many as it has room for."""
    for gives_way in (False, True):
        there = sum(each.part.gives_way == gives_way for each in running)
        most = beside if gives_way else room.for_parts(there)
        yield from [part for part in waiting if part.gives_way == gives_way][: max(0, most - there)]


def environment() -> dict[str, str]:
    """What a process of the run gets: Python keeps what it has compiled, whatever the caller set.

    Hundreds of processes import the same modules; compiling them each time took half of a run.
    """
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _start(part: Part, folder: Path, *, niceness: int) -> _Running:
    folder.mkdir(parents=True)
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            part.words(folder),
            cwd=ROOT,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    if niceness:
        os.setpriority(os.PRIO_PGRP, process.pid, os.nice(0) + niceness)
        with suppress(OSError):  # Linux may give each session the same share: then only this is heeded (sched(7))
            Path(f"/proc/{process.pid}/autogroup").write_text(str(niceness))
    return _Running(part, folder, process, time.monotonic())


def _end(running: Sequence[_Running]) -> None:
    """Interrupts what still runs, waits for it, and kills what does not end."""
    for each in running:
        each.stop(time.monotonic())
    while not all(each.advance(time.monotonic()) for each in running):
        time.sleep(_POLL_S)
    for each in running:
        _stop_stacks(each.folder)


def _cpu_of_ended_s() -> float:
    """The CPU time of all children that this process has waited for: it grows when a part is found to have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return


def _judge(ended: _Running) -> Result:
    part, code = ended.part, ended.process.returncode
    outcomes = read_outcomes(_outcomes_file(ended.folder))
    faults = []
    if ended.stopped_s is not None:
        faults.append(f"stopped after its limit of {part.limit_s:g} s")
    if code < 0:
        faults.append(f"killed by {signal.Signals(-code).name}")
    elif code:
        faults.append(f"exit code {code}")
    if part.is_pytest:
        faults += _faults_of_tests(part, outcomes)
    faults += [f"left running: {name}" for name in _stop_stacks(ended.folder)]
    output = (ended.folder / "output").read_text(encoding="utf-8", errors="replace")
    return Result(part, time.monotonic() - ended.started_s, output, tuple(faults), outcomes, ended.cpu_s)


def _faults_of_tests(part: Part, outcomes: Outcomes) -> list[str]:
    if not outcomes.collected:
        return ["ran no test"]
    missing = [test for test in part.tests if test not in {each.test for each in outcomes.collected}]
    faults = []
    for what, tests in (
        ("not collected", missing),
        ("without an outcome", [] if "--collect-only" in part.command else outcomes.without()),
        ("failed", sorted(outcomes.failed)),
        ("skipped", sorted(outcomes.skipped)),
    ):
        if tests:
            faults.append(f"{len(tests)} {what}, first {tests[0]}")
    return faults


def _stop_stacks(folder: Path) -> list[str]:
    """Kills what the part's sandboxes left running; the names of those processes."""
    left = []
    for path in (folder / "tmp").rglob("stack.json"):
        stack = Stack.find(path.parent)
        if stack is not None and stack.alive():
            left += [node.name for node in stack.state.nodes if node.process.alive()]
            stack.kill()
    return left


def _outcomes_file(folder: Path) -> Path:
    return folder / "outcomes"
