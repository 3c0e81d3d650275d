"""What the text of a checkout says of its grain: sizes, makers of values, names, docstrings."""

from __future__ import annotations

import ast
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tests.docstrings import is_imperative, is_property
from tests.source_trees import nodes_of, tree_of

TOPS = ("eosctl", "commands")
SHORT_FILE = 80
PLAIN_CLASSES = 4  # dataclasses where `--help` must not load msgspec
_Function = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPOUND = (ast.If, ast.For, ast.With, ast.Try, ast.While)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*")


def measure_source(root: Path) -> dict[str, int]:
    """Return the measures of `eosctl/`, `commands/` and `tests/` below `root`, by what each is called in the table."""
    files = [path for top in TOPS for path in sorted((root / top).rglob("*.py"))]
    lines = {path: _count_lines(path) for path in files}
    functions = [node for path in files for node in nodes_of(path) if isinstance(node, _Function)]
    sizes = sorted(function.end_lineno - function.lineno + 1 for function in functions if function.end_lineno)
    texts = [(node, text) for node in functions if not is_property(node) and (text := ast.get_docstring(node))]
    return {
        "lines of eosctl/ and commands/": sum(lines.values()),
        "files": len(files),
        f"files under {SHORT_FILE} lines, __init__.py aside": sum(
            count < SHORT_FILE for path, count in lines.items() if path.name != "__init__.py"
        ),
        "lines of a function, median": int(statistics.median(sizes)),
        "lines of a function, p90": sizes[len(sizes) * 9 // 10],
        "lines of a function, most": sizes[-1],
        **_count_makers(files, root),
        "different last words of class names": len({_last_word(name) for name in _class_names(files)}),
        "private functions of a module that are used once": sum(map(_count_used_once, files)),
        "functions of one plain statement": sum(map(_is_one_statement, functions)),
        "Any": sum(isinstance(node, ast.Name) and node.id == "Any" for path in files for node in nodes_of(path)),
        "docstrings of functions without an imperative": sum(not is_imperative(text) for _node, text in texts),
        "lines of tests/": sum(map(_count_lines, (root / "tests").rglob("*.py"))),
    }


def _count_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def _class_names(files: Iterable[Path]) -> Iterator[str]:
    return (node.name for path in files for node in nodes_of(path) if isinstance(node, ast.ClassDef))


def _last_word(name: str) -> str:
    return str((_WORD.findall(name) or [name])[-1])


def _count_makers(files: Iterable[Path], root: Path) -> dict[str, int]:
    """Count the classes of each maker of values; one is also what its bases are, wherever they are declared."""
    classes = [(path, node) for path in files for node in nodes_of(path) if isinstance(node, ast.ClassDef)]
    bases = {node.name: {_called(base) for base in node.bases} for _path, node in classes}
    in_wire = root / "eosctl" / "wire", root / "eosctl" / "kafka" / "wire"
    found = Counter[str]()
    for path, node in classes:
        decorators = {_called(decorator) for decorator in node.decorator_list}
        found["@dataclass"] += "dataclass" in decorators
        found["NamedTuple outside wire"] += "NamedTuple" in bases[node.name] and not any(
            map(path.is_relative_to, in_wire)
        )
        found["msgspec.Struct"] += "Struct" in _all_bases(node.name, bases)
    makers = sum(n > (PLAIN_CLASSES if name == "@dataclass" else 0) for name, n in found.items())
    return {"makers of values": makers, **{f"classes by {name}": n for name, n in found.items()}}


def _all_bases(name: str, bases: Mapping[str, set[str]], known: frozenset[str] = frozenset()) -> set[str]:
    direct = bases.get(name, set()) - known
    return direct.union(*(_all_bases(base, bases, known | direct) for base in direct))


def _called(node: ast.expr) -> str:
    """Return the last name of an expression: `Struct` of `msgspec.Struct`, `dataclass` of `dataclass(frozen=True)`."""
    if isinstance(node, ast.Call):
        return _called(node.func)
    return node.attr if isinstance(node, ast.Attribute) else str(getattr(node, "id", ""))


def _count_used_once(path: Path) -> int:
    uses = Counter(node.id for node in nodes_of(path) if isinstance(node, ast.Name))
    private = (node.name for node in tree_of(path).body if isinstance(node, _Function) and node.name.startswith("_"))
    return sum(uses[name] == 1 for name in private)


def _is_one_statement(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    statements = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return len(statements) == 1 and not isinstance(statements[0], _COMPOUND)
