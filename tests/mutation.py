"""`.venv/bin/python -m tests.mutation [MODULE…]`: how many small changes to the pure rules the unit tests notice.

mutmut makes the changes and runs the tests; `[tool.mutmut]` in pyproject.toml names the modules and the tests, and
docs/mutation.md keeps the score. It takes minutes, and is no part of `python3 -m tests`. A change that mypy refuses
counts neither way. Sentences are left alone: what they say is wording, and the tests hold codes, counts and names.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import libcst
from mutmut import __main__ as mutmut
from mutmut.mutation import mutators
from mutmut.mutation.data import SourceFileMutationData
from mutmut.stats import status_by_exit_code
from mutmut.utils.file_utils import walk_mutatable_files

_WANTED_PERCENT = 95
_KILLED = ("killed", "timeout")
_REFUSED_BY_MYPY = "caught by type check"


def main(modules: list[str]) -> int:
    """Tries every change to `modules` (`eosctl.fence.rules`; default: all); 0 if enough of each are noticed."""
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"  # mutmut calls mypy
    _leave_sentences_alone()
    shutil.rmtree("mutants", ignore_errors=True)  # what an earlier run found there was found by other tests
    mutmut.cli.main(["run", "--max-children", "1", *(f"{module}.*" for module in modules)], standalone_mode=False)
    enough = [_show(path) for path in sorted(walk_mutatable_files()) if _is_among(path, modules)]
    return 0 if all(enough) else 1


def _leave_sentences_alone() -> None:
    operators = mutators.mutation_operators
    assert isinstance(operators, list)
    operators[:] = [
        (node, _names_only if operator is mutators.operator_string else operator) for node, operator in operators
    ]


def _names_only(node: libcst.BaseString) -> Iterable[libcst.BaseString]:
    """Changes to a literal, unless it has a space."""
    if isinstance(node, libcst.SimpleString) and " " in node.value:
        return []
    return mutators.operator_string(node)


def _is_among(path: Path, modules: list[str]) -> bool:
    return not modules or ".".join(path.with_suffix("").parts) in modules


def _show(path: Path) -> bool:
    """Prints a line for the module and one per change that no test noticed; whether enough were noticed."""
    data = SourceFileMutationData(path=path)
    data.load()
    status = {name: status_by_exit_code[code] for name, code in data.exit_code_by_key.items()}
    counts = Counter(status.values())
    killed = sum(counts[each] for each in _KILLED)
    tried = len(status) - counts[_REFUSED_BY_MYPY]
    print(f"{path}: {tried} mutants, {killed} killed ({100 * killed / max(tried, 1):.1f} %)")
    for name, each in sorted(status.items()):
        if each not in (*_KILLED, _REFUSED_BY_MYPY):
            print(f"    {name}: {each}")
    return killed * 100 >= tried * _WANTED_PERCENT


def _modules() -> list[str]:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=(__doc__ or "").partition("\n\n")[2])
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="as in eosctl.fence.rules; default: all")
    return list(parser.parse_args().modules)


if __name__ == "__main__":
    sys.exit(main(_modules()))
