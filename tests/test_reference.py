"""`eosctl explain` and docs/codes.md: a code is declared once, beside its rule, and whatever prints it names that."""

from __future__ import annotations

import ast
import copy
import importlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from eosctl import errors
from eosctl.errors import ExitCode
from eosctl.explain.entries import KINDS, MODULES, known_entries
from tests.conftest import Invoke
from tests.source_trees import tree_of

ROOT = Path(__file__).resolve().parent.parent
ENTRIES = known_entries()
CODES = set(ENTRIES)
DECLARERS = ("error", "warning", "finding", "gate")
MADE_WITH_A_CODE = {"Problem", "Finding", "_Rule", "Gate"}
HEAD = """\
# Codes and words

What `eosctl explain CODE` prints, in one page. Made from the declarations of the codes by `pytest --update-golden`.
"""
TITLES = {
    "error": "Errors",
    "warning": "Warnings",
    "finding": "Findings",
    "gate": "Gates of an upgrade",
    "exit code": "Exit codes",
    "word": "Words",
}


TREES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): tree_of(path)
    for top in ("eosctl", "commands")
    for path in sorted((ROOT / top).rglob("*.py"))
}


class Declared(NamedTuple):
    """Where a code is declared, and under which name; empty where it has none."""

    module: str
    name: str
    code: str


def _called(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _written_codes(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, text) of every code that is written out where a problem, a finding or a gate is made or changed."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or _called(node) not in {*MADE_WITH_A_CODE, "replace"}:
            continue
        given = [word.value for word in node.keywords if word.arg in ("code", "id")]
        given += node.args[:1] if _called(node) in MADE_WITH_A_CODE else []
        for value in given:
            branches = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
            yield from ((node.lineno, ast.unparse(each)) for each in branches if isinstance(each, _TEXTS))


_TEXTS = (ast.Constant, ast.JoinedStr, ast.BinOp)


def _declared(module: str, tree: ast.Module) -> Iterator[Declared]:
    """What `eosctl/codes.py` is called for, wherever that is; named where it is at the top of a module or a class."""
    nodes = list(ast.walk(tree))
    imported = {
        name.asname or name.name
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module == "eosctl.codes"
        for name in node.names
    }
    if not imported & {*DECLARERS}:
        return
    scopes: list[ast.Module | ast.ClassDef] = [tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))]
    names = {
        id(node.value): ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
        for scope in scopes
        for node in scope.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
    }
    for node in nodes:
        if isinstance(node, ast.Call) and _called(node) in imported & {*DECLARERS}:
            [code] = [each.value if isinstance(each, ast.Constant) else "" for each in node.args[:1]]
            yield Declared(module, names.get(id(node), ""), str(code))


DECLARED = [each for module, tree in TREES.items() for each in _declared(module, tree)]


def test_no_code_is_written_out_where_it_is_used() -> None:
    """A code stood as a literal in the source, and its meaning and its fix a second time in a table."""
    found = [f"{module}:{line} {text}" for module, tree in TREES.items() for line, text in _written_codes(tree)]
    assert found == []


def test_every_code_is_declared_by_its_name_in_a_module_that_is_listed() -> None:
    assert len(DECLARED) > 200
    assert {each.module for each in DECLARED} == {module.__name__ for module in MODULES}
    of_errors = {each for each in DECLARED if (each.module, each.name) == ("eosctl.errors", "code")}
    assert [each for each in DECLARED if each not in of_errors and each.name != each.code.upper()] == []
    assert {each.code for each in DECLARED} == {entry for entry in ENTRIES if entry.kind in DECLARERS}
    assert [code for code, times in Counter(each.code for each in DECLARED).items() if times > 1] == []


def test_codes_are_made_by_the_declarations_and_by_what_explains_words() -> None:
    """`Code(…)` itself, in the middle of a function, would be a code that nothing explains."""
    makers = {module for module, tree in TREES.items() if any(_called(node) == "Code" for node in ast.walk(tree))}
    assert makers == {"eosctl.codes", "eosctl.explain.operations", "eosctl.explain.entries"}


def _named(tree: ast.Module) -> Iterator[str]:
    """The names that are read in a module, and what it takes from modules of codes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id.endswith("codes"):
            yield node.attr


def test_what_is_explained_can_be_printed() -> None:
    """A code that the source no longer has would stay in the docs for ever."""
    used = Counter[str]()
    for tree in TREES.values():
        used.update(_named(tree))
    assert [each for each in DECLARED if each.name != "code" and not used[each.name]] == []
    classes = [name for name, each in vars(errors).items() if isinstance(each, type) and hasattr(each, "code")]
    assert [name for name in classes if not used[name]] == []


def test_the_collectors_see_every_spelling() -> None:
    source = (
        "from eosctl.codes import finding, gate as g\n"
        "x.Problem('a', m); Finding(code='b'); _Rule('c'); Gate(id='d'); Finding('e' if x else C, m)\n"
        "Finding(f'f{x}'); replace(it, code='g'); Finding(codes.X); Problem(each.code)\n"
        "X = finding('x', 'y')\nclass E:\n    code: str = finding('e', 'y')\ndef f():\n    return finding('z', 'y')\n"
    )
    tree = ast.parse(source)
    assert [text for _line, text in _written_codes(tree)] == ["'a'", "'b'", "'c'", "'d'", "'e'", "f'f{x}'", "'g'"]
    assert [(each.name, each.code) for each in _declared("m", tree)] == [("X", "x"), ("code", "e"), ("", "z")]


def test_gates_and_exit_codes_are_all_there_are() -> None:
    assert {str(int(code)) for code in ExitCode} == {entry for entry in ENTRIES if entry.kind == "exit code"}
    gates = importlib.import_module("eosctl.upgrade.gates")
    assert [*gates.GATE_IDS, *gates.DRIVER_GATE_IDS, *gates.PLAN_GATE_IDS] == [
        entry for entry in ENTRIES if entry.kind == "gate"
    ]


def test_a_code_is_text_and_stays_one_when_it_is_copied() -> None:
    [code] = [entry for entry in ENTRIES if entry == "stale_plan"]
    again = copy.deepcopy(code)
    assert (again, again.kind, again.meaning, again.next) == (code, code.kind, code.meaning, code.next)
    assert type(str(code)) is str


def test_each_code_is_explained_once_and_in_sentences() -> None:
    assert len(CODES) == len(ENTRIES)
    assert [entry for entry in ENTRIES if not entry.meaning.endswith((".", "?"))] == []


def test_the_page_is_the_table(pytestconfig: pytest.Config) -> None:
    lines = [HEAD]
    for kind in KINDS:
        lines += [f"## {TITLES[kind]}\n", "| code | meaning | next |", "| --- | --- | --- |"]
        found = [entry for entry in ENTRIES if entry.kind == kind]
        lines += [f"| `{entry}` | {entry.meaning} | {entry.next} |".replace("|  |", "| |") for entry in found]
        lines.append("")
    page = "\n".join(lines)
    path = ROOT / "docs" / "codes.md"
    if pytestconfig.getoption("--update-golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(page, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == page


def test_explain_one(invoke: Invoke) -> None:
    outcome = invoke("explain", "stale_plan")
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert outcome.stdout == (
        "stale_plan (error): What the plan was made from has changed since; nothing was written.\n"
        "  next: Run the command again: it plans anew.\n"
    )


@pytest.mark.parametrize("words", [["task-count", "record"], ["lso"], ["Zombie"], ["6"], ["fencing_pace"]])
def test_explain_words_gates_and_exit_codes(invoke: Invoke, words: list[str]) -> None:
    outcome = invoke("explain", *words, "-o", "json")
    assert outcome.exit_code == 0
    [row, *_columns] = outcome.json()["data"]["rows"]
    assert row["code"].casefold() == " ".join(words).casefold()


def test_explain_a_column_in_each_of_its_meanings(invoke: Invoke) -> None:
    outcome = invoke("explain", "open-for", "-o", "json")
    rows = outcome.json()["data"]["rows"]
    assert {(row["code"], row["type"], row["next"]) for row in rows} == {("OPEN-FOR", "column", None)}
    described = (
        "How long the transaction has been open; `-` where none is open. (In fence-plan, fence-result, txn-describe.)"
    )
    assert described in [row["meaning"] for row in rows]


def test_an_unknown_code_names_what_is_near(invoke: Invoke) -> None:
    outcome = invoke("explain", "dubble_speling")
    assert (outcome.exit_code, outcome.stdout) == (1, "")
    assert "Did you mean double_spelling" in outcome.stderr
    assert "eosctl explain" in invoke("explain", "qqqqqqqq").stderr


def test_without_a_code_all_are_listed(invoke: Invoke) -> None:
    rows = invoke("explain", "-o", "json").json()["data"]["rows"]
    assert {row["code"] for row in rows} == CODES
    assert len(invoke("explain").stdout.splitlines()) > len(CODES)
