"""The JSON Schema (2020-12) of a kind of document, derived from the classes of its parts.

Fields may be added to a kind, so unknown members are allowed.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from copy import deepcopy
from enum import Enum
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin

import msgspec

from eosctl.output.rows import Kind, Members, Schema, annotations_of

Json = dict[str, Any]

_OF_TYPES: dict[Any, Json] = {
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    None: {"type": "null"},
    object: {},
    Any: {},
}


class DocumentTarget(msgspec.Struct, frozen=True):
    """The target that a document is about."""

    kafka_cluster_id: str | msgspec.UnsetType | None = msgspec.UNSET
    group_id: str | msgspec.UnsetType | None = msgspec.UNSET


class Trouble(msgspec.Struct, frozen=True):
    """An entry of `errors`."""

    code: str
    message: str
    hint: str | None
    severity: Literal["error", "warning"]


_CODES = (0, 1, 2, 3, 4, 5, 6, 7, 130)
_STATUSES = ("ok", "findings", "partial", "refused", "error")


def schema_of_kind(kind: Kind) -> Json:
    """Return the schema of the whole document."""
    data = _object({"rows": list[kind.row], "summary": kind.summary, **_hints(kind.data)})  # type: ignore[name-defined]  # a type that is a value
    members: Mapping[str, Json] = {
        "kind": {"enum": [str(kind)]},
        "version": {"enum": [1]},
        "status": {"enum": sorted(_STATUSES)},
        "exit_code": {"enum": sorted(_CODES)},
        "target": schema_of_type(DocumentTarget),
        "data": data,
        "errors": schema_of_type(list[Trouble]),
    }
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": str(kind), "description": kind.what}
    return {**about, "type": "object", "properties": dict(members), "required": list(members)}


def schema_of_type(annotation: Any) -> Json:
    """Return the schema of a type; raise TypeError for one that JSON does not have."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _annotated(annotation)
    if origin in (Union, types.UnionType):
        # typing keeps one of all unions that are equal, in the order of whichever came first: null goes last
        allowed = [each for each in get_args(annotation) if each is not msgspec.UnsetType]
        choices = sorted(allowed, key=lambda each: each is type(None))
        return (
            schema_of_type(choices[0]) if len(choices) == 1 else {"anyOf": [schema_of_type(each) for each in choices]}
        )
    if origin is Literal:
        return {"enum": sorted(get_args(annotation))}
    if origin in (list, tuple, Sequence):
        return {"type": "array", "items": schema_of_type(get_args(annotation)[0])}
    if origin in (dict, Mapping):
        return _object({}, others=get_args(annotation)[1])
    if isinstance(annotation, NewType):
        return schema_of_type(annotation.__supertype__)
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return _object(_hints(annotation))
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return {"enum": sorted(each.value for each in annotation)}
    if annotation in _OF_TYPES:
        return dict(_OF_TYPES[annotation])
    raise TypeError(f"{annotation} is nothing that JSON has")


def _annotated(annotation: Any) -> Json:
    """Return the type's own schema, or the one given in its place, with the annotation's text as its description."""
    inner, marks = annotation.__origin__, annotation.__metadata__
    given = next((_given(mark, inner) for mark in marks if isinstance(mark, Schema | Members)), None)
    made = schema_of_type(inner) if given is None else given
    words = [mark for mark in marks if isinstance(mark, str)]
    return {**made, "description": words[0]} if words else made


def _given(mark: Schema | Members, inner: Any) -> Json:
    if isinstance(mark, Schema):
        return deepcopy(mark.members)  # who gets a schema may change it
    others = get_args(inner)[1] if get_args(inner) else object
    named = mark.named if isinstance(mark.named, dict) else dict.fromkeys(mark.named, others)
    return _object(named, others=others)


def _hints(owner: Any) -> dict[str, Any]:
    """Return the type of each member, in order."""
    hints = annotations_of(owner)
    names = zip(owner.__struct_fields__, owner.__struct_encode_fields__, strict=True)
    return {printed: hints[name] for name, printed in names}


def _object(members: Mapping[str, Any], *, others: Any = msgspec.UNSET) -> Json:
    made: Json = {
        "type": "object",
        "properties": {name: schema_of_type(each) for name, each in members.items()},
        "required": [name for name, each in members.items() if not _may_be_unset(each)],
    }
    if others is not msgspec.UNSET:
        made["additionalProperties"] = schema_of_type(others)
    return made


def _may_be_unset(annotation: Any) -> bool:
    return msgspec.UnsetType in get_args(annotation) or (
        get_origin(annotation) is Annotated and _may_be_unset(annotation.__origin__)
    )
