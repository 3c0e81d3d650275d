"""The syntax trees of source files, each parsed once in a process: many rules of the house look through all of them."""

from __future__ import annotations

import ast
import functools
from pathlib import Path


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """That of a file, which nobody changes."""
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file's tree, as `ast.walk` gives them."""
    return tuple(ast.walk(tree_of(path)))
