"""Edits the config file as text, so that its comments and its spelling stay.

Lines are spliced at the positions that the YAML parser reports, and the outcome is parsed again: if it is not exactly
the wanted one (anchors, unusual layouts), nothing is changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from eosctl.core.kept.yaml_document import yaml_of
from eosctl.errors import InputFileError

_PLAIN = re.compile(r"[A-Za-z0-9_/.$~-][A-Za-z0-9_/.:$@=+-]*")


def edit_yaml(text: str, path: Sequence[str], value: object, *, source: str) -> str:
    """Set `value` at `path` in `text`; None removes it. Raise InputFileError if that can't be done."""
    import yaml

    wanted = _changed(yaml_of(text, source=source) or {}, path, value)
    try:
        edited = _splice(text, path, value)
        is_right = (yaml_of(edited, source=source) or {}) == wanted
    except (yaml.YAMLError, InputFileError, _CannotSpliceError):
        is_right = False
    if not is_right:
        raise InputFileError(
            f"{source}: {'.'.join(path)} can't be changed without rewriting the whole file",
            hint="Change it in an editor: the layout around it is unusual (anchors, or several values on a line).",
        )
    return edited


class _CannotSpliceError(Exception):
    """There is no line for the value."""


def _changed(document: Any, path: Sequence[str], value: object) -> Any:
    changed = deepcopy(document)
    parents = [changed]
    for key in path[:-1]:
        if not isinstance(parents[-1].get(key), dict):
            parents[-1][key] = {}
        parents.append(parents[-1][key])
    if value is not None:
        parents[-1][path[-1]] = value
        return changed
    parents[-1].pop(path[-1], None)
    for parent, key in zip(reversed(parents[:-1]), reversed(path[:-1]), strict=True):
        if parent[key] == {}:
            parent[key] = None  # what a key without lines below it reads as
            break
    return changed


def _splice(text: str, path: Sequence[str], value: object) -> str:
    import yaml

    root: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is None or _is_null(root):
        return _with_end(text) + _block(path, value, 0)
    key, node, missing = _deepest(root, path)
    if missing:
        if value is None:
            return text
        return _insert(text, _line_below(key, node), _block(missing, value, _column(key, node)))
    if value is not None and _is_on_one_line(node):
        return text[: node.start_mark.index] + _flow(value) + text[node.end_mark.index :]
    lines = _with_end(text).splitlines(keepends=True)
    first, last = key.start_mark.line, max(_last_line(node), key.start_mark.line)
    added = [] if value is None else [_block(path[-1:], value, key.start_mark.column)]
    return "".join(lines[:first] + added + lines[last + 1 :])


def _deepest(root: Any, path: Sequence[str]) -> tuple[Any, Any, Sequence[str]]:
    """Return the last existing key of `path`, its value, and the missing keys below it; the root has no key."""
    import yaml

    key, node = None, root
    for depth, name in enumerate(path):
        if _is_null(node):
            return key, node, path[depth:]
        if not isinstance(node, yaml.MappingNode) or node.flow_style:
            raise _CannotSpliceError
        found = next(((k, v) for k, v in node.value if k.value == name), None)
        if found is None:
            return key, node, path[depth:]
        key, node = found
    return key, node, ()


def _line_below(key: Any, node: Any) -> int:
    """Return the line of a new key: after the last key of a mapping, or right below a key without a value."""
    return int(key.start_mark.line if _is_null(node) else _last_line(node)) + 1


def _column(key: Any, node: Any) -> int:
    return int(key.start_mark.column + 2 if _is_null(node) else node.start_mark.column)


def _is_null(node: Any) -> bool:
    return bool(node.tag == "tag:yaml.org,2002:null" and node.start_mark.index == node.end_mark.index)


def _is_on_one_line(node: Any) -> bool:
    """Decide whether the value can be replaced in place, instead of as whole lines."""
    return node.style not in ("|", ">") if node.id == "scalar" else bool(node.flow_style)


def _last_line(node: Any) -> int:
    """Return the last line of a node's own text; the parser's end of a block is after what follows it."""
    if node.id == "scalar" or node.flow_style:
        return int(node.end_mark.line) - (getattr(node, "style", None) in ("|", ">"))
    last = node.value[-1]
    return max(_last_line(last[1]), last[0].start_mark.line) if node.id == "mapping" else _last_line(last)


def _insert(text: str, line: int, block: str) -> str:
    lines = _with_end(text).splitlines(keepends=True)
    return "".join([*lines[:line], block, *lines[line:]])


def _with_end(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def _block(path: Sequence[str], value: object, column: int) -> str:
    """Format nested keys as `a:` / `  b: value`, one a line."""
    lines = [f"{' ' * (column + 2 * depth)}{_flow(key)}:" for depth, key in enumerate(path)]
    return "\n".join(lines) + f" {_flow(value)}\n"


def _flow(value: object) -> str:
    """Format a value on one line; omit quotes if YAML reads the same text without them."""
    import yaml

    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    text = str(value)
    if _PLAIN.fullmatch(text) and not text.endswith(":") and yaml.safe_load(text) == text:
        return text
    return json.dumps(text, ensure_ascii=False)
