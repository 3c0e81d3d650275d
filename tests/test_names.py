"""Names in the whole house: a public class name has one meaning."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from tests.source_trees import tree_of

ROOT = Path(__file__).resolve().parent.parent
HOUSE = [path for top in ("commands", "eosctl") for path in (ROOT / top).rglob("*.py")]


def _doubles(files: Iterable[Path]) -> dict[str, list[str]]:
    """Public class names that are defined in more than one of the files, and in which."""
    where = defaultdict[str, list[str]](list)
    for path in files:
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where[node.name].append(path.name)
    return {name: sorted(found) for name, found in where.items() if len(found) > 1}


def test_a_public_class_name_stands_once() -> None:
    """There used to be two of Action, Allowances, Claim, Finding and ten others, and four of Verdict."""
    assert len(HOUSE) > 300
    assert _doubles(HOUSE) == {}


def test_the_search_finds_doubles(tmp_path: Path) -> None:
    for name, source in (("a", "class Route:\n    pass\nclass _Own: ..."), ("b", "class Route: ...\nclass _Own: ...")):
        (tmp_path / f"{name}.py").write_text(source)
    assert _doubles(tmp_path.glob("*.py")) == {"Route": ["a.py", "b.py"]}
