"""The house in numbers: how much text and how many concepts it has, how far a command walks, beside the goals.

Everything is measured on this checkout, with its tests' fakes. `--before FILE` has what `--json` printed in another
checkout, and is a column beside; what has no goal but "not more than before" is held to it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

from benchmarks.house.instructions import measure_instructions
from benchmarks.house.lines import ASKING, ROOT, measure_lines
from benchmarks.house.source import PLAIN_CLASSES, measure_source
from tests.test_layers import FLOORS

GOALS = {  # the most that is wanted
    "lines of eosctl/ and commands/": 74_000,
    "files": 370,
    "floors": 8,
    "lines of a function, median": 10,
    "lines of a function, p90": 30,
    "lines of a function, most": 70,
    "classes by @dataclass": PLAIN_CLASSES,
    "classes by NamedTuple outside wire": 0,
    "makers of values": 1,
    "different last words of class names": 150,
    "private functions of a module that are used once": 500,
    "functions of one plain statement": 700,
    "Any": 60,
    "docstrings of functions without an imperative": 0,
    "lines of tests/": 68_000,
    "places that decide whether a task still runs": 1,
    "files entered by fence --connector": 45,
    "functions entered by fence --connector": 260,
    "files entered by doctor": 90,
    "functions entered by doctor": 520,
    "files entered by offsets merge": 60,
    "functions entered by offsets merge": 340,
    **{f"TCP connects of {name}": 3 for name in ASKING},
    **{f"whole reads of the config topic by {name}": 1 for name in ASKING},
}
_BY_READING = {"places that decide whether a task still runs": None}  # no script can tell
Measures = Mapping[str, int | None]


def main() -> None:
    """Measure, and print the table, or JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.house", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--before", type=Path, metavar="FILE", help="what --json printed elsewhere")
    parser.add_argument("--root", type=Path, default=ROOT, metavar="DIR", help="the checkout whose text is measured")
    parser.add_argument("--text-only", action="store_true", help="leave out what is run: a second in place of a minute")
    arguments = parser.parse_args()
    before = json.loads(arguments.before.read_text(encoding="utf-8")) if arguments.before else {}
    measures: dict[str, int | None] = {**measure_source(arguments.root), "floors": len(FLOORS), **_BY_READING}
    if not arguments.text_only:
        measures |= {**measure_lines(), **measure_instructions()}
    goals = {**{name: known["value"] for name, known in before.items() if name.startswith("instructions")}, **GOALS}
    if arguments.json:
        print(
            json.dumps({name: {"value": value, "goal": goals.get(name)} for name, value in measures.items()}, indent=2)
        )
    else:
        print("\n".join(table(measures, goals, {name: known["value"] for name, known in before.items()})))


def table(measures: Measures, goals: Measures, before: Measures) -> list[str]:
    """Return the lines of the table."""
    width = max(map(len, measures))
    lines = [f"{'MEASURE':{width}}  {'BEFORE':>13}  {'VALUE':>13}  {'GOAL':>13}  MET"]
    for name, value in measures.items():
        goal = goals.get(name)
        met = "" if goal is None else "?" if value is None else "yes" if value <= goal else "no"
        cells = (_cell(before.get(name), ""), _cell(value, "not measured"), _cell(goal, ""))
        lines.append(f"{name:{width}}  {'  '.join(f'{cell:>13}' for cell in cells)}  {met}".rstrip())
    return lines


def _cell(value: int | None, absent: str) -> str:
    return absent if value is None else f"{value:,}"


if __name__ == "__main__":
    main()
