"""What one pytest process wrote down (tests/run/plugin.py): what it collected, and what became of each test.

A process that dies, or ends early with exit code 0, leaves tests without an outcome.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Collected:
    """A test: its node id, its marks (live, spark), and the session fixtures of ours that it asks for."""

    test: str
    marks: frozenset[str]
    stacks: frozenset[str]


@dataclass(slots=True)
class Outcomes:
    """What one pytest process wrote; `duration_s` is the time of setup, call and teardown by test.

    `left_out` are tests of its files that its marks leave to another process.
    """

    collected: list[Collected] | None = None
    left_out: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    skipped: set[str] = field(default_factory=set)
    passed: set[str] = field(default_factory=set)
    duration_s: dict[str, float] = field(default_factory=dict)

    def without(self) -> list[str]:
        """The collected tests that have no outcome."""
        known = self.failed | self.skipped | self.passed
        return [each.test for each in self.collected or () if each.test not in known]


def read_outcomes(path: Path) -> Outcomes:
    """What the plugin wrote to `path`; nothing where it never started. A last line that was cut off is left out."""
    found = Outcomes()
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if "collected" in entry:
            found.collected = [
                Collected(each["test"], frozenset(each["marks"]), frozenset(each["stacks"]))
                for each in entry["collected"]
            ]
        elif "left_out" in entry:
            found.left_out.update(entry["left_out"])
        else:
            _add(found, entry)
    return found


def _add(found: Outcomes, entry: Mapping[str, Any]) -> None:
    test = entry["test"]
    found.duration_s[test] = found.duration_s.get(test, 0.0) + entry["duration_s"]
    if entry["outcome"] == "failed":
        found.failed.add(test)
    elif entry["outcome"] == "skipped":
        found.skipped.add(test)
    elif entry["when"] == "call":
        found.passed.add(test)
