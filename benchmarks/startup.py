"""What is waited for before anything is done: help, and what the Tab key offers.

`eosctl --help` and `eosctl doctor --help` beside a bare click group: with one command, and with a command that has as
many options as doctor has. Then completions as the shell asks for them: commands, options, and the ids of a broker,
which `--broker` starts.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import click

from benchmarks.pairs import Run, compare, installed_eosctl, run_once
from benchmarks.stacks import own_folder, stack_in
from benchmarks.txn_list import make_ids

BARE = """
import click, sys
@click.group()
def root(): pass
@root.command()
def one(): pass
for number in range(int(sys.argv.pop(1))):
    one = click.option(f"--option-{number}", metavar="NAME", help="Do this, or that where it is not so. " * 2)(one)
root()
"""
LINES = ("", "doctor --", "offsets ", "fence --", "doctor --ignore ")
OF_A_BROKER, _IDS = ("fence bench", "txn describe bench"), 20


def main() -> None:
    """Print each side and the ratios, then the seconds of each Tab."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description=__doc__)
    parser.add_argument("runs", type=int, nargs="?", default=15)
    parser.add_argument("--broker", action="store_true", help="also complete the ids of a broker")
    arguments = parser.parse_args()
    with own_folder() as directory:
        bare, eosctl = directory / "bare.py", installed_eosctl(directory)
        bare.write_text(BARE)
        _help(eosctl, bare, "", options=0, runs=arguments.runs)
        _help(eosctl, bare, "doctor ", options=_options_of_doctor(), runs=arguments.runs)
        for line in LINES:
            _complete(eosctl, line, {}, arguments.runs)
        if arguments.broker:
            with stack_in(directory) as stack:
                make_ids(stack, directory, _IDS)
                for line in OF_A_BROKER:
                    _complete(eosctl, line, {"EOSCTL_BOOTSTRAP_SERVER": stack.bootstrap_servers}, arguments.runs)


def _help(eosctl: str, bare: Path, words: str, *, options: int, runs: int) -> None:
    """Compare the help of eosctl, or of a command of it, with that of a bare group, or of a command with options."""
    ours = [eosctl, *words.split(), "--help"]
    python = Path(eosctl).with_name("python")  # not this one, which finds an editable eosctl first, as ours does not
    plain = [str(python), str(bare), str(options), *(["one"] if words else []), "--help"]
    compare(f"eosctl {words}--help", lambda: ours, f"bare click, {options} options", lambda: plain, runs=runs)


def _options_of_doctor() -> int:
    """Return how many options doctor has, the global ones included."""
    doctor = importlib.import_module("eosctl.commands.doctor").doctor
    root = importlib.import_module("eosctl.commands.frame.root").root
    return len(doctor.get_params(click.Context(doctor, parent=click.Context(root))))


def _complete(eosctl: str, line: str, environ: Mapping[str, str], runs: int) -> None:
    """Complete the last word of a line as the bash script does, and print the seconds; nothing is kept from a run."""
    words = f"eosctl {line}"
    shell = {"_EOSCTL_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    found, offered = list[Run](), 0
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as cache:
            given = {**shell, **environ, "XDG_CACHE_HOME": cache}
            found.append(run_once(["env", *(f"{name}={value}" for name, value in given.items()), eosctl]))
            if not offered:  # with an error nothing is offered, and that is quick
                done = subprocess.run([eosctl], env={**os.environ, **given}, capture_output=True, text=True, check=True)
                offered = len(done.stdout.splitlines())
    walls, cpu_s = [each.wall_s for each in found], statistics.median(each.cpu_s for each in found)
    times = f"wall {min(walls):.3f} / {statistics.median(walls):.3f} s (min / median), CPU {cpu_s:.3f} s"
    print(f"{f'{words}<Tab>':28} {times}, {offered} offered")


if __name__ == "__main__":
    main()
