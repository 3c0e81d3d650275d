"""Run two commands in turn, A B A B …, as whole processes, and print the ratio A/B pair by pair."""

from __future__ import annotations

import compileall
import os
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

Command = Callable[[], Sequence[str]]
_ROOT = Path(__file__).resolve().parent.parent
_MOST_SAID, _LONG_S = 4_000, 60


@dataclass(frozen=True, slots=True)
class Run:
    """One finished process: wall and CPU seconds, and peak memory in MiB."""

    wall_s: float
    cpu_s: float
    peak_mib: float


def compile_sources() -> None:
    """Write eosctl's bytecode, as installing a wheel does: an editable checkout may have none."""
    for package in ("eosctl", "commands"):
        compileall.compile_dir(_ROOT / package, quiet=1)


def installed_eosctl(directory: Path) -> str:
    """Install the checkout below `directory` as `pip install .` does; return the script `eosctl`.

    It has the other packages of this environment. The one that is installed editable here starts with a finder of
    setuptools' that users do not have. A copy is built: setuptools leaves a folder `build` where it builds.
    """
    environment, source = directory / "installed", directory / "source"
    shutil.copytree(_ROOT, source, ignore=shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "tests"))
    venv.create(environment, with_pip=False)
    [packages] = environment.glob("lib/python*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    python = environment / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*install, "--no-deps", "--no-build-isolation", str(source)], check=True)
    return str(environment / "bin" / "eosctl")


def elsewhere(work: Callable[..., object], *arguments: object) -> None:
    """Do `work` in another process: Linux counts what this one has had as memory of each process that it starts."""
    process = get_context("fork").Process(target=work, args=arguments)
    process.start()
    try:
        process.join()
    finally:
        process.terminate()
    if process.exitcode:
        sys.exit(process.exitcode)


def run_once(command: Sequence[str], *, codes: Collection[int] = (0,)) -> Run:
    """Run `command` with its output thrown away; raise CalledProcessError, after what it said, for an exit code that
    is not one of `codes`.
    """
    started_s = time.perf_counter()
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said) as process,
    ):
        try:
            _pid, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.terminate()
            raise
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in codes:
            said.seek(0)
            print(said.read()[-_MOST_SAID:].decode("utf-8", "replace"), file=sys.stderr)
            raise subprocess.CalledProcessError(process.returncode, command)
    return Run(time.perf_counter() - started_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def compare(
    name_a: str, a: Command, name_b: str, b: Command, *, runs: int, run: Callable[[Sequence[str]], Run] = run_once
) -> float:
    """Print both sides and the ratios; return the median ratio of wall time A/B.

    `a` and `b` make the command line of each run, outside the timing, and `run` runs it. A warm-up pair goes before
    the `runs`. It is counted where it took more than a minute, or where `runs` is 0.
    """
    pairs = [(run(a()), run(b())) for _ in range(runs + 1)]
    if sum(side.wall_s for side in pairs[0]) < _LONG_S:
        pairs = pairs[1:] or pairs
    for name, side in ((name_a, 0), (name_b, 1)):
        walls = sorted(pair[side].wall_s for pair in pairs)
        peak = max(pair[side].peak_mib for pair in pairs)
        cpu_s = statistics.median(pair[side].cpu_s for pair in pairs)
        times = f"wall {walls[0]:.3f} / {statistics.median(walls):.3f} s (min / median), CPU {cpu_s:.3f} s"
        print(f"{name:28} {times}, peak {peak:.0f} MiB")
    ratios = sorted(first.wall_s / second.wall_s for first, second in pairs)
    median = statistics.median(ratios)
    print(f"{'ratio, pair by pair':28} {ratios[0]:.2f} / {median:.2f} / {ratios[-1]:.2f} (min / median / max)")
    of_cpu = statistics.median(first.cpu_s / second.cpu_s for first, second in pairs)
    print(f"{'ratio of CPU':28} {of_cpu:.2f} (median)")
    return median
