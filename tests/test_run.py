"""The runner of `python3 -m tests` on real child processes: what goes wrong in a part makes the run red."""

from __future__ import annotations

import os
import re
import signal
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from eosctl.sandbox.servers import process
from eosctl.sandbox.servers import process as state
from eosctl.sandbox.servers.process import Node, StackState
from tests.fakes.clock import PLENTY_S
from tests.run import planning
from tests.run.memory import memory_folder
from tests.run.outcomes import Collected, Outcomes
from tests.run.parts import ROOT, Part, Result, run_parts
from tests.run.room import LOOK_S, Room
from tests.run.sharing import TOGETHER

SLEEP = "import time; time.sleep(600)"
AUTOGROUP = Path("/proc/self/autogroup")
GREEN = "def test_one(): pass\n\ndef test_two(): pass\n"
Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a pytest over a file with this text as a part of a run, without anything of ours but the plugin."""

    def run_part(*texts: str, limit_s: float = PLENTY_S, marks: str = "", processes: int = 1) -> Result:
        files = [tmp_path / name for name in ("test_it.py", "test_other.py", "test_third.py")[: len(texts)]]
        for file, text in zip(files, texts, strict=True):
            file.write_text(textwrap.dedent(text), encoding="utf-8")
        alone = ("-c", os.devnull, f"--rootdir={tmp_path}", "--disable-plugin-autoload")
        shared = ("-p", "tests.run.sharing", f"--processes={processes}")
        part = Part("part", ("pytest", "-q", *alone, *shared, "-m", marks, *map(str, files)), limit_s)
        [result] = run_parts([part], tmp_path / "run", at_once=1)
        return result

    return run_part


def test_a_green_part_has_no_fault(run: Run) -> None:
    result = run(GREEN)
    assert result.faults == ()
    assert sorted(result.outcomes.passed) == ["test_it.py::test_one", "test_it.py::test_two"]


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        pytest.param("def test_one(): assert 0", ("exit code 1", "1 failed, first test_it.py::test_one"), id="failed"),
        pytest.param(
            "import os, signal\ndef test_one(): os.kill(os.getpid(), signal.SIGKILL)",
            ("killed by SIGKILL", "1 without an outcome, first test_it.py::test_one"),
            id="killed",
        ),
        pytest.param(
            f"{GREEN}\ndef test_three():\n  import os\n  os._exit(0)\n\ndef test_four(): pass",
            ("2 without an outcome, first test_it.py::test_three",),
            id="ends early, with exit code 0",
        ),
        pytest.param("", ("exit code 5", "ran no test"), id="no test"),
        pytest.param("no Python", ("exit code 2", "ran no test"), id="not collected"),
        pytest.param(
            "import pytest\n@pytest.mark.skip\ndef test_one(): pass\ndef test_two(): pytest.skip()",
            ("2 skipped, first test_it.py::test_one",),
            id="skipped",
        ),
        pytest.param(
            "import pytest\n@pytest.fixture\ndef stack():\n  yield\n  raise OSError\ndef test_one(stack): pass",
            ("exit code 1", "1 failed, first test_it.py::test_one"),
            id="teardown",
        ),
    ],
)
def test_what_makes_a_part_red(run: Run, text: str, faults: tuple[str, ...]) -> None:
    """The runner took the largest exit code: one of a killed pytest is negative, and the run ended with 0."""
    assert run(text).faults == faults


MET = """
import pathlib, time

def test_one(tmp_path):
    print("printed by", __name__)
    (tmp_path.parents[1] / __name__).touch()
    while len(list(tmp_path.parents[1].glob("test_*"))) < 2: time.sleep(0.01)
"""


@pytest.mark.parametrize(
    ("third", "faults", "shown"),
    [
        ("", (), ""),
        ("    assert 0", ("exit code 1", "1 failed, first test_third.py::test_one"), "printed by test_third"),
        (
            "    import os; os._exit(0)",
            ("2 without an outcome, first test_third.py::test_one",),
            "",
        ),
        (
            "    import os; os.kill(os.getpid(), 9)",
            ("exit code 1", "2 without an outcome, first test_third.py::test_one"),
            "ended with -9",
        ),
        (
            "    raise KeyboardInterrupt",
            ("exit code 1", "2 without an outcome, first test_third.py::test_one"),
            "ended with 1",
        ),
    ],
    ids=["green", "failed", "ends early, with exit code 0", "killed", "interrupted"],
)
def test_what_happens_in_one_of_several_processes(run: Run, third: str, faults: tuple[str, ...], shown: str) -> None:
    """The first two files wait for each other: they run side by side."""
    last = f"def test_one():\n    print('printed by', __name__)\n{third}\n\ndef test_two(): pass"
    result = run(MET, MET, last, processes=2)
    assert result.faults == faults
    assert {"test_it.py::test_one", "test_other.py::test_one"} <= result.outcomes.passed
    assert shown in result.output


@pytest.mark.parametrize("processes", [1, 2])
def test_a_part_that_hangs_is_stopped_at_its_limit(run: Run, processes: int) -> None:
    result = run("import time\ndef test_one(): time.sleep(600)", limit_s=2, processes=processes)
    assert result.faults[0] == "stopped after its limit of 2 s"
    assert "killed by SIGKILL" not in result.faults, "it was interrupted: fixtures stop what they started"


@pytest.mark.parametrize(
    ("named", "faults"), [((), ()), (("test_of_this_name_there_is_none",), ("exit code 4", "ran no test"))]
)
def test_a_part_runs_the_tests_that_were_planned_and_misses_none(
    tmp_path: Path, named: tuple[str, ...], faults: tuple[str, ...]
) -> None:
    file = "tests/test_packaging.py"
    planned = tuple(f"{file}::{name}" for name in ("test_packages_are_the_tree", *named))
    [result] = run_parts([Part("part", ("pytest", "-q", "--no-skips"), PLENTY_S, planned)], tmp_path / "run", at_once=1)
    assert result.faults == faults
    assert result.outcomes.passed == ({f"{file}::test_packages_are_the_tree"} if not faults else set())


def test_a_process_of_the_sandbox_that_is_left_is_ended_and_is_a_fault(run: Run, tmp_path: Path) -> None:
    left = process.spawn([sys.executable, "-c", SLEEP], log=tmp_path / "log", directory=tmp_path, environ={})
    node = Node("broker-1", "broker", "", left.pid, left.start_ticks, config="", log="")
    directory = tmp_path / "left"
    directory.mkdir()
    state.save(StackState("left", str(directory), "4.3.1", (node,), {}))
    text = (directory / "stack.json").read_text(encoding="utf-8")
    result = run(f"def test_one(tmp_path): (tmp_path / 'stack.json').write_text({text!r})")
    assert result.faults == ("left running: broker-1",)
    assert not left.alive()


def test_a_linter_is_judged_by_its_exit_code(tmp_path: Path) -> None:
    parts = [Part("types", ("nothing_of_this_name",), PLENTY_S), Part("fine", ("json.tool", "--help"), PLENTY_S)]
    red, green = sorted(run_parts(parts, tmp_path / "run", at_once=2), key=lambda result: result.part.name != "types")
    assert (red.faults, green.faults) == (("exit code 1",), ())
    assert "nothing_of_this_name" in red.output


def test_the_cpu_time_of_a_part_is_that_of_its_processes(tmp_path: Path) -> None:
    """Seconds tell nothing of a part that waits, or runs beside others: what it costs was not known."""
    busy = "import time\nwhile time.process_time() < 0.5: pass"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    parts = [Part("busy", ("timeit", "-n1", "-r1", parent), PLENTY_S), Part("idle", ("json.tool", "--help"), PLENTY_S)]
    cpu_s = {result.part.name: result.cpu_s for result in run_parts(parts, tmp_path / "run", at_once=2)}
    assert cpu_s["busy"] > 0.5
    assert 0 < cpu_s["idle"] < cpu_s["busy"]


def test_a_part_that_gives_way_has_a_place_of_its_own_and_a_low_priority(tmp_path: Path) -> None:
    """Units took the first minutes of a run, and then what is live waited with nothing beside it.

    Where Linux schedules by sessions, of which each part has one, `nice` alone changed nothing of that.
    """
    told, wait = tmp_path / "told", "while not p.exists(): time.sleep(0.05)"
    path = f"import os, time, pathlib; p = pathlib.Path({str(told)!r})\n"
    tell = f"print('nice', os.nice(0))\ng = pathlib.Path({str(AUTOGROUP)!r})\nprint(g.exists() and g.read_text())"
    nice = Part("nice", ("timeit", "-n1", "-r1", f"{path}{wait}\n{tell}"), PLENTY_S, gives_way=True)
    nicer = replace(nice, name="nicer")
    first = Part("first", ("timeit", "-n1", "-r1", f"{path}print('nice', os.nice(0))"), PLENTY_S)
    second = Part("second", ("timeit", "-n1", "-r1", f"{path}p.touch()"), PLENTY_S)

    def follow(result: Result) -> list[Part]:
        return [second] if result.part == first else []

    results = run_parts([nice, nicer, first], tmp_path / "run", at_once=1, beside=1, follow=follow)
    assert [result.faults for result in results] == [()] * 4
    assert (results[0].part, results[-1].part) == (first, nicer)
    output, mine = {result.part.name: result.output for result in results}, os.nice(0)
    assert f"nice {mine}\n" in output["first"]
    assert f"nice {min(19, mine + 10)}\n" in output["nice"]
    assert not AUTOGROUP.exists() or re.search(r"^/autogroup-\d+ nice 10$", output["nice"], re.MULTILINE)
    (alone,) = run_parts([replace(first, gives_way=True)], tmp_path / "alone", at_once=0, beside=1)
    assert f"nice {mine}\n" in alone.output, "there is nobody to give way to"


def test_an_interrupted_run_leaves_no_part_running(tmp_path: Path) -> None:
    """Ctrl-C reaches the runner alone: each part has a process group of its own."""
    started: list[int] = []

    def follow(_result: Result) -> list[Part]:
        pids = [int(path.name) for path in Path("/proc").glob("[0-9]*") if _is_child_of_ours(path)]
        started.extend(pids)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
        return []

    parts = [Part("quick", ("json.tool", "--help"), PLENTY_S), Part("slow", ("timeit", SLEEP), PLENTY_S)]
    with pytest.raises(KeyboardInterrupt):
        run_parts(parts, tmp_path / "run", at_once=2, follow=follow)
    assert started
    assert not [pid for pid in started if _is_child_of_ours(Path(f"/proc/{pid}"))]


def _is_child_of_ours(path: Path) -> bool:
    try:
        fields = (path / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return int(fields[1]) == os.getpid() and fields[0] != "Z" and SLEEP.encode() in (path / "cmdline").read_bytes()


def test_every_test_is_in_one_part() -> None:
    tests = [
        Collected("a.py::one", frozenset(), frozenset()),
        Collected("b.py::one", frozenset(), frozenset()),
        Collected("b.py::two", frozenset({"live"}), frozenset({"stack"})),
        Collected("c.py::one", frozenset({"live"}), frozenset({"stack"})),
        Collected("c.py::two", frozenset({"live"}), frozenset()),
        Collected("d.py::one", frozenset({"live", "spark"}), frozenset({"spark", "stack"})),
        Collected("d.py::two", frozenset({"live", "spark"}), frozenset({"stack"})),
        Collected("e.py::one", frozenset({"spark"}), frozenset()),
        Collected("f.py::one", frozenset({"spark"}), frozenset()),
        Collected("f.py::two", frozenset({"live", "spark"}), frozenset()),
        Collected("g.py::one", frozenset({"spark"}), frozenset({"spark"})),
    ]
    live = {part.name: part.tests for part in planning.live_parts(tests)}
    assert live["stack"] == ("b.py::two", "c.py::one")
    assert live["short ones"] == ("e.py::one", "f.py::one")
    assert live["spark+stack"] == ("d.py::one", "g.py::one"), "one Spark"
    assert live["f.py"] == ("f.py::two",), "its brokers are its own, too"
    assert sorted(test for part in live.values() for test in part) == [each.test for each in tests if each.marks]


def test_every_file_is_in_one_part_and_what_one_part_leaves_out_is_in_another() -> None:
    files = planning.test_files()
    assert {f"tests/{Path(__file__).name}", "tests/core/workers/test_upgrade.py"} <= set(files)
    assert not [*(ROOT / "tests").rglob("*_test.py")], "pytest would find these as well"
    units = planning.unit_part(files, 3).command
    assert sorted(word for word in units if word.endswith(".py")) == sorted(files)
    parsing = {file for file in files if re.search("(?m)^from tests.source_trees", (ROOT / file).read_text())}
    first = units.index(TOGETHER[0])
    assert parsing <= set(TOGETHER) == set(units[first : first + len(TOGETHER)]), "sources are parsed in one process"
    collection = planning.collection_part().command
    assert units[units.index("-m") + 1] == f"not ({collection[collection.index('-m') + 1]})"


def test_what_one_part_leaves_out_and_no_other_runs_makes_the_run_red(run: Run) -> None:
    """The live tests are looked for in files that speak of them: one that was missed there ran nowhere."""
    text = """
    import pytest

    @pytest.mark.filterwarnings("default")
    def test_one(): pass

    def test_two(): pass

    @pytest.mark.slow
    @pytest.mark.filterwarnings("default")
    def test_what_takes_minutes(): pass
    """
    units = run(text, marks="not filterwarnings").outcomes
    assert (units.passed, units.left_out) == ({"test_it.py::test_two"}, {"test_it.py::test_one"})
    assert planning.never_run([units]) == ["test_it.py::test_one"]
    assert planning.never_run([units, Outcomes(passed={"test_it.py::test_one"})]) == []


def test_files_whose_tests_are_live_are_collected() -> None:
    files = {word for word in planning.collection_part().command if word.endswith(".py")}
    contract = "tests/contract/test_topic_store.py"
    assert {contract, "tests/fence/test_fence_live.py", "tests/migrate/spark/test_interrupt.py"} <= files
    assert "tests/fence/test_fence_plan.py" not in files


def test_a_live_part_that_nobody_has_timed_does_not_start_last() -> None:
    """One of a single test, which took a minute, was taken to take a second, and ran alone at the end."""
    timed = "tests/sandbox/test_demo_live.py"
    files = ("tests/sandbox/test_truststore.py", timed, "new_live.py", "tests/sandbox/test_jars.py")
    tests = [Collected(f"{file}::one", frozenset({"live"}), frozenset()) for file in files]
    tests.append(Collected("a.py::one", frozenset({"live"}), frozenset({"stack"})))
    parts = planning.live_parts(tests)
    assert [part.name for part in parts] == ["stack", "short ones", "new_live.py", timed]
    assert parts[1].tests == (f"{files[0]}::one", f"{files[3]}::one"), "known to be short, and one part together"


@pytest.mark.parametrize("is_last", ["collection", "first start of kafka", "first start of newest-kafka"])
def test_live_parts_wait_for_the_first_starts_and_units_do_not(is_last: str) -> None:
    """In a run from empty caches every broker and worker started without the classes that the first one keeps."""
    plan = planning.Plan(fast=False)
    tests = [Collected("a.py::one", frozenset(), frozenset()), Collected("b.py::one", frozenset({"live"}), frozenset())]
    followed = {}
    assert "units" in [part.name for part in plan.first()], "they wait for nothing"
    for part in sorted(plan.first(), key=lambda part: part.name == is_last):
        found = Outcomes(collected=tests if part.name == "collection" else None)
        followed[part.name] = [each.name for each in plan.after(Result(part, 1.0, "", (), found))]
    assert {name: parts for name, parts in followed.items() if parts} == {is_last: ["b.py"]}


def test_a_fast_run_has_no_first_start_and_nothing_live() -> None:
    """It collected every test once before each part collected its own: 20 s in which nothing else was done."""
    plan = planning.Plan(fast=True)
    assert plan.first() == [*planning.LINT, planning.unit_part(planning.test_files(), 5, fast=True)]
    examples = "--hypothesis-profile=few"
    assert [examples in part.command for part in plan.first()] == [False, False, False, True]
    assert not [part for part in planning.Plan(fast=False).first() if examples in part.command], "a full run has all"
    assert all(part.gives_way for part in plan.first()), "others have no room there"
    assert not [each for part in plan.first() for each in plan.after(Result(part, 1.0, "", ()))]


@pytest.mark.parametrize(
    ("free_blocks", "flags", "is_taken"),
    [(8, 0, True), (7, 0, False), (8, os.ST_NOEXEC, False)],
    ids=["enough", "too little", "no programs"],
)
def test_files_go_to_memory_where_there_is_room_and_programs_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, free_blocks: int, flags: int, is_taken: bool
) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    found = os.statvfs_result((4096, 4096, 100, 100, free_blocks, 0, 0, 0, flags, 255))
    taken = memory_folder(8 * 4096, folder=tmp_path, look=lambda _folder: found)
    assert taken == (tmp_path if is_taken else None)


def test_files_go_where_the_caller_says_and_not_where_nothing_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert memory_folder(0, folder=tmp_path) is None
    monkeypatch.delenv("TMPDIR")
    assert memory_folder(0, folder=tmp_path) == tmp_path
    assert memory_folder(0, folder=tmp_path / "absent") is None


def test_more_run_side_by_side_where_the_processors_have_time_left() -> None:
    """When the units were over, five that wait left a third of two fast processors idle for five minutes."""
    now_s, times = [0.0], [0, 0]
    room = Room(2, 4, times=lambda: (times[0], times[1]), clock_s=lambda: now_s[0])

    def after(spare: int, there: int) -> int:
        now_s[0] += LOOK_S
        times[0], times[1] = times[0] + spare, times[1] + 100
        return room.for_parts(there)

    assert (room.for_parts(2), after(20, 2), after(21, 2), after(50, 3), after(99, 4)) == (2, 2, 3, 4, 4)
    assert after(50, 1) == 4, "there is room already"
    assert (after(0, 3), after(0, 1), after(0, 1)) == (3, 2, 2), "nobody comes after those that end"
    assert Room(0, 0, times=lambda: (0, 0)).for_parts(0) == 0
