"""A short way to write JSON Schemas, so that the table of kinds can be read.

| written | means |
| --- | --- |
| `"int"`, `"str"`, `"num"`, `"bool"`, `"null"`, `"int|null"` | one of these types |
| `"time"` | text in RFC 3339 |
| `"text"` | bytes: text where they are UTF-8, else `{"base64": "…"}` |
| `"any"` | anything |
| `{"write", "keep"}` | one of these values |
| `[shape]` | a list |
| `(shape, shape)` | one of these; `None` is null |
| `{"name": shape, "name?": shape, "*": shape}` | an object: this member, perhaps this one, others like this one |
"""

from __future__ import annotations

from dataclasses import dataclass, field

Shape = object  # what the table above says; a recursive alias makes messages unreadable
Schema = dict[str, object]

_BASE64: Schema = {
    "type": "object",
    "properties": {"base64": {"type": "string", "contentEncoding": "base64"}},
    "required": ["base64"],
}
_WORDS: dict[str, Schema] = {
    "int": {"type": "integer"},
    "num": {"type": "number"},
    "str": {"type": "string"},
    "bool": {"type": "boolean"},
    "null": {"type": "null"},
    "time": {"type": "string", "format": "date-time"},
    "text": {"anyOf": [{"type": "string"}, _BASE64]},
    "any": {},
}


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of document: what it says, in one line, and the shapes of a row, of the summary and of other data."""

    what: str
    row: Shape = "any"
    summary: Shape = field(default_factory=dict)
    data: dict[str, Shape] = field(default_factory=dict)


def schema(shape: Shape) -> Schema:
    """The JSON Schema that `shape` stands for; raises KeyError for an unknown word."""
    if shape is None:
        return schema("null")
    if isinstance(shape, str):
        found = [_WORDS[word] for word in shape.split("|")]
        return found[0] if len(found) == 1 else {"anyOf": found}
    if isinstance(shape, set | frozenset):
        return {"enum": sorted(shape)}
    if isinstance(shape, list):
        (item,) = shape
        return {"type": "array", "items": schema(item)}
    if isinstance(shape, tuple):
        return {"anyOf": [schema(each) for each in shape]}
    assert isinstance(shape, dict)  # noqa: S101 - the table is ours
    return _object(shape)


def _object(members: dict[str, Shape]) -> Schema:
    named = {name: shape for name, shape in members.items() if name != "*"}
    made: Schema = {
        "type": "object",
        "properties": {name.removesuffix("?"): schema(shape) for name, shape in named.items()},
        "required": [name for name in named if not name.endswith("?")],
    }
    if "*" in members:
        made["additionalProperties"] = schema(members["*"])
    return made
