"""`eosctl explain` and docs/codes.md: every code that the source can print is in the one table."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from eosctl import errors
from eosctl.errors import ExitCode
from eosctl.explain.entries import KINDS, known_entries
from eosctl.fence.pace import Pace
from tests.conftest import Invoke

ROOT = Path(__file__).resolve().parent.parent
ENTRIES = known_entries()
CODES = set(ENTRIES)
MADE_WITH_A_CODE = {"Problem", "Finding", "_Rule", "Gate"}
HEAD = """\
# Codes and words

What `eosctl explain CODE` prints, in one page. Made by `pytest --update-golden`.
"""
TITLES = {
    "error": "Errors",
    "warning": "Warnings",
    "finding": "Findings",
    "gate": "Gates of an upgrade",
    "exit code": "Exit codes",
    "word": "Words",
}


def _written_codes(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, code) of every code that is written out where a problem, a finding or a gate is made."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or ast.unparse(node.func).rpartition(".")[2] not in MADE_WITH_A_CODE:
            continue
        given = node.args[:1] or [word.value for word in node.keywords if word.arg in ("code", "id")]
        for value in given:
            branches = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
            for branch in branches:
                if isinstance(branch, ast.Constant) and isinstance(branch.value, str):
                    yield node.lineno, branch.value


def test_every_code_in_the_source_is_explained() -> None:
    found = {
        (f"{path.relative_to(ROOT)}:{line}", code)
        for path in (ROOT / "eosctl").rglob("*.py")
        for line, code in _written_codes(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert len(found) > 100
    assert sorted(pair for pair in found if pair[1] not in CODES) == []


def test_what_is_explained_can_be_printed() -> None:
    """A code that the source no longer has would stay in the docs for ever."""
    files = [path for path in (ROOT / "eosctl").rglob("*.py") if path.parent.name != "reference"]
    source = "".join(path.read_text(encoding="utf-8") for path in files)
    codes = [entry for entry in ENTRIES if entry.kind in ("error", "warning", "finding", "gate")]
    assert [code for code in codes if f'"{code}"' not in source and not code.startswith("fencing_")] == []


def test_the_collector_sees_every_spelling() -> None:
    source = "x.Problem('a', m); Finding(code='b'); _Rule('c'); Gate(id='d'); Finding('e' if x else 'f', m)"
    assert {code for _line, code in _written_codes(ast.parse(source))} == set("abcdef")


def test_codes_that_come_from_tables_are_explained() -> None:
    classes = [each for each in vars(errors).values() if isinstance(each, type) and hasattr(each, "code")]
    assert {each.code for each in classes} <= CODES
    assert {str(int(code)) for code in ExitCode} == {entry for entry in ENTRIES if entry.kind == "exit code"}
    assert {f"fencing_{pace.value}" for pace in Pace if pace is not Pace.FINE} <= CODES
    lint = importlib.import_module("eosctl.core.offsets.findings")
    assert {code for code, _words in lint._IGNORED.values()} <= CODES
    assert {"value_not_json", "value_not_a_map", "value_not_primitive"} <= CODES
    assert {"wrong_type", "kip_text_key", "kip_text_field", "unparsable", "tombstoned"} <= CODES
    assert set(importlib.import_module("eosctl.offsets.files.export")._LEFT_OUT) <= CODES
    scenarios = importlib.import_module("eosctl.connectors.failures")
    assert {each.code for each in scenarios.SCENARIOS} <= CODES
    gates = importlib.import_module("eosctl.upgrade.gates")
    assert [*gates.GATE_IDS, *gates.DRIVER_GATE_IDS] == [entry for entry in ENTRIES if entry.kind == "gate"]


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
