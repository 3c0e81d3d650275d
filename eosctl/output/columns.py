"""Derives the columns of a kind's text, with descriptions, from its row's types.

Knows no particular kind; `rows` explains how a column is declared.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
from msgspec import Struct

from eosctl.output.cells import Column
from eosctl.output.rows import Header, Kind, Members, ShownAs


class Field(Struct, frozen=True):
    """The declaration of a field or a method of a row: its type (None for a method), description, header and format."""

    type: Any
    words: str = ""
    header: str | None = None
    shown_as: Callable[[Any], object] | None = None


def columns_of(kind: Kind) -> tuple[Column, ...]:
    """Return the columns of the kind's text; by default every field of the row."""
    named = kind.text.columns
    paths = fields_of(classes_in(kind.row)[0]) if named is None else named
    return tuple(_column(kind, path) for path in paths)


def wide_columns_of(kind: Kind) -> tuple[Column, ...]:
    """Return the further columns of `-o wide`."""
    return tuple(_column(kind, path) for path in kind.text.wide)


def words_of_columns(kind: Kind) -> Iterator[tuple[str, str]]:
    """Yield (header, description) of every column of the kind's text, wide ones included."""
    named = kind.text.columns
    paths = fields_of(classes_in(kind.row)[0]) if named is None else named
    for path in (*paths, *kind.text.wide):
        field = field_at(kind.row, path.removesuffix("?"))
        yield _header(path.removesuffix("?"), field), field.words


def _column(kind: Kind, path: str) -> Column:
    found = path.removesuffix("?")
    field = field_at(kind.row, found)
    plain = field.shown_as is None and field.type is not None and "." not in found  # which `Column` reads by itself
    source = found if plain else _reader(found.split("."), field.shown_as)
    return Column(_header(found, field), source, optional=found != path)


def _header(path: str, field: Field) -> str:
    return field.header or path.rpartition(".")[2].upper().replace("_", "-")


def _reader(steps: Sequence[str], shown_as: Callable[[Any], object] | None) -> Callable[[Any], object]:
    """Return a function from a row to the member at a path; it returns None if any step is missing."""

    def read(row: Any) -> object:
        value = row
        for step in steps:
            method = getattr(type(value), step, None)
            if isinstance(method, types.FunctionType):
                value = method(value)
            else:
                value = value.get(step) if isinstance(value, Mapping) else getattr(value, step)
            if value is None or value is msgspec.UNSET:
                return None
        return value if shown_as is None else shown_as(value)

    return read


def field_at(row: Any, path: str) -> Field:
    """Return the field or the method at a dotted path of a row's class, or classes; raise LookupError with the path."""
    found = Field(row)
    for step in path.split("."):
        inside = _inside(found.type, step, found)
        if inside is None:
            raise LookupError(f"{row} has nothing at {path}")
        found = inside
    return found


def _inside(annotation: Any, name: str, above: Field) -> Field | None:
    """Return the member's declaration in the first class, of those that a type allows, that has it."""
    found = (_member(each, name, above) for each in _choices(annotation, annotated=True))
    return next((each for each in found if each is not None), None)


def _member(owner: Any, name: str, above: Field) -> Field | None:
    """Return a field, a method, or a member of a dict; the latter has the dict's description if it lacks its own."""
    if get_origin(owner) is Annotated:
        named = [mark.named for mark in owner.__metadata__ if isinstance(mark, Members)]
        if named and isinstance(named[0], dict) and name in named[0]:
            return _field(named[0][name])
        return _inside(owner.__origin__, name, above)
    if get_origin(owner) in (dict, Mapping):
        return Field(get_args(owner)[1], above.words)
    if not isinstance(owner, type):
        return None
    method = getattr(owner, name, None)
    if isinstance(method, types.FunctionType):
        words = " ".join((method.__doc__ or "").split()).removeprefix("Return ")
        return Field(None, words[:1].upper() + words[1:], getattr(method, "header", None))
    return fields_of(owner).get(name)


@functools.cache
def fields_of(owner: Any) -> Mapping[str, Field]:
    """Return the fields of a row's class, in order, with their annotations."""
    if not (isinstance(owner, type) and issubclass(owner, msgspec.Struct)):
        return {}
    hints = annotations_of(owner)
    return {name: _field(hints[name]) for name in owner.__struct_fields__}


def annotations_of(owner: type) -> Mapping[str, Any]:
    """Return the annotations of a class and its bases; `typing.get_type_hints` would also look into each of them."""
    return {name: each for above in reversed(owner.__mro__) for name, each in _own_annotations(above).items()}


def _own_annotations(owner: type) -> Mapping[str, Any]:
    return inspect.get_annotations(owner, eval_str=True) if issubclass(owner, msgspec.Struct) else {}


def _field(annotation: Any) -> Field:
    marks = [mark for each in _choices(annotation, annotated=True) for mark in getattr(each, "__metadata__", ())]
    words = next((mark for mark in marks if isinstance(mark, str)), "")
    header = next((mark.text for mark in marks if isinstance(mark, Header)), None)
    shown_as = next((mark.function for mark in marks if isinstance(mark, ShownAs)), None)
    return Field(annotation, words, header, shown_as)


def classes_in(annotation: Any) -> list[Any]:
    """Return the classes that a type allows, without null."""
    return [each for each in _choices(annotation) if each is not type(None)]


def _choices(annotation: Any, *, annotated: bool = False) -> list[Any]:
    """Return the members of a union, else the type itself; with `annotated`, keep the annotations."""
    found = [annotation]
    while True:
        opened = [part for each in found for part in _opened(each, annotated=annotated)]
        if opened == found:
            return found
        found = opened


def _opened(annotation: Any, *, annotated: bool) -> Sequence[Any]:
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        return get_args(annotation)
    if origin is Annotated and not annotated:
        return [annotation.__origin__]
    return [annotation]
