"""Reads YAML that a person wrote, and refuses forms that PyYAML accepts and that no settings file needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eosctl.errors import InputFileError

if TYPE_CHECKING:
    import yaml

_MOST_VALUES = 100_000
"""The limit once aliases are followed: nine lines of nine aliases each become gigabytes (a billion laughs)."""
_DEEPEST = 100
"""The limit of nested brackets on a line: PyYAML's time grows with the square of their number (6.0)."""


def yaml_of(text: str, *, source: str, once: bool = False, hint: str | None = None) -> Any:
    """Return the value of a YAML document; of two equal keys the later counts, unless `once` forbids duplicates.

    Raises InputFileError, with the line if it is known, for text that is not YAML, or is too large.
    """
    import yaml

    class ShallowLoader(yaml.SafeLoader):
        def fetch_flow_collection_start(self, token: Any) -> None:
            if self.flow_level == _DEEPEST:
                raise _TooLargeError(f"it is nested more than {_DEEPEST} deep")
            super().fetch_flow_collection_start(token)

    try:
        loader = ShallowLoader(text)
        try:
            root = loader.get_single_node()
            if root is None:
                return None
            _measure(root, {})
            if once:
                _refuse_double_keys(loader, root)
            return loader.construct_document(root)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else 0
        raise InputFileError(f"{source}:{line}: not valid YAML: {exc.problem}", hint=hint) from None
    except _TooLargeError as exc:
        raise InputFileError(f"{source}: not valid YAML: {exc}", hint=hint) from None
    except (yaml.YAMLError, ValueError, TypeError, ArithmeticError, LookupError, AttributeError, RecursionError) as exc:
        # what its constructors raise for `!!timestamp x`, `!!bool x` and such
        raise InputFileError(f"{source}: not valid YAML: {type(exc).__name__}", hint=hint) from None


class _TooLargeError(Exception):
    """A document larger than any settings file."""


def _measure(node: yaml.Node, sizes: dict[int, int]) -> int:
    """Return how many values a node comes to, each alias counted again; raise _TooLargeError."""
    if id(node) not in sizes:
        sizes[id(node)] = _MOST_VALUES  # for one that holds itself
        below = node.value if isinstance(node.value, list) else []
        parts = [part for each in below for part in (each if isinstance(each, tuple) else (each,))]
        sizes[id(node)] = 1 + sum(_measure(part, sizes) for part in parts)
    if sizes[id(node)] > _MOST_VALUES:
        raise _TooLargeError(f"its aliases stand for more than {_MOST_VALUES:,} values")
    return sizes[id(node)]


def _refuse_double_keys(loader: yaml.SafeLoader, node: yaml.Node) -> None:
    """Raise MarkedYAMLError for a key that stands twice in one mapping."""
    import yaml

    if isinstance(node, yaml.MappingNode):
        keys = [loader.construct_object(key, deep=True) for key, _value in node.value]
        twice = next((key for number, key in enumerate(keys) if key in keys[:number]), None)
        if twice is not None:
            raise yaml.MarkedYAMLError(None, None, f"{twice} stands there twice", node.start_mark)
    if isinstance(node, yaml.CollectionNode):
        for each in node.value:
            for part in each if isinstance(each, tuple) else (each,):
                _refuse_double_keys(loader, part)
