"""Fields of a Kubernetes object: their names, values and writers (`metadata.managedFields`). Pure.

Source: Kubernetes, FieldsV1: `f:NAME` is a member, `k:{"name":"NAME"}` an element of a list by its key, `.` the field.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct


class Named(Struct, frozen=True):
    """A step to the element of a list that has this `name`."""

    name: str


Manifest = Mapping[str, Any]
"""An object of Kubernetes, or a part of one, as its JSON has it."""
Path = tuple["str | int | Named", ...]


class Writer(Struct, frozen=True):
    """The last writer of a field, as the API server has it; `time` is RFC 3339."""

    manager: str
    operation: str
    time: str


PatchType = Literal["strategic", "merge", "json"]


class Patch(Struct, frozen=True):
    """`type` and `body` are what `kubectl patch` takes; `change` says it in words where the body has more than that."""

    thing: str
    type: PatchType
    body: Any
    change: str = ""

    def words(self) -> list[str]:
        """Return kubectl's arguments with the body, to be pasted: everybody on that machine can see secrets in it."""
        return [*self._head(), "--patch", self.text]

    def words_for_stdin(self) -> list[str]:
        """Return kubectl's arguments for a body, `text`, on its stdin."""
        return [*self._head(), "--patch-file", "/dev/stdin"]

    @property
    def text(self) -> str:
        """The body as kubectl reads it."""
        return json.dumps(self.body)

    def _head(self) -> list[str]:
        return ["patch", self.thing, "--type", self.type]


def field_words(path: Path) -> str:
    """Spell the field as a manifest is read: `spec.containers[connect].env[X].value`."""
    told = ""
    for step in path:
        if isinstance(step, Named):
            told += f"[{step.name}]"
        elif isinstance(step, int):
            told += f"[{step}]"
        else:
            told += f".{step}" if step.replace("_", "").isalnum() else f'["{step}"]'
    return told.removeprefix(".")


def value_at(manifest: Manifest, path: Path) -> Any:
    """Return the value of the field; None if it is absent."""
    found: Any = manifest
    for step in path:
        found = _step(found, step)
    return found


def _step(found: object, step: str | int | Named) -> object:
    if isinstance(step, Named):
        elements = found if isinstance(found, list) else ()
        return next((each for each in elements if isinstance(each, Mapping) and each.get("name") == step.name), None)
    if isinstance(step, int):
        return found[step] if isinstance(found, list) and step < len(found) else None
    return found.get(step) if isinstance(found, Mapping) else None


def nested(path: Path, value: object) -> Any:
    """Make the body of a patch that sets this one field; raise TypeError if only a number identifies an element."""
    for step in reversed(path):
        if isinstance(step, int):
            raise TypeError(f"{field_words(path)}: a patch can't name an element by its place")
        value = [{"name": step.name, **value}] if isinstance(step, Named) and isinstance(value, dict) else {step: value}
    return value


def writers_of(manifest: Manifest, path: Path) -> tuple[Writer, ...]:
    """Return the owners of the field, or of a part of it, the newest last; empty if none is known."""
    return _writers([each for each in _managed(manifest) if _owns(each.get("fieldsV1") or {}, path)])


def newest_writer(manifest: Manifest) -> Writer | None:
    """Return the last writer of anything but the status."""
    writers = _writers([each for each in _managed(manifest) if not each.get("subresource")])
    return writers[-1] if writers else None


def _managed(manifest: Manifest) -> Sequence[Manifest]:
    return (manifest.get("metadata") or {}).get("managedFields") or ()


def _writers(entries: Sequence[Manifest]) -> tuple[Writer, ...]:
    found = (
        Writer(str(each.get("manager")), str(each.get("operation")), str(each.get("time", ""))) for each in entries
    )
    return tuple(sorted(found, key=lambda writer: writer.time))


def _owns(fields: Manifest, path: Path) -> bool:
    """Decide whether the set of fields has the path; a list or map owned as a whole ends it early."""
    node: object = fields
    for number, step in enumerate(path):
        if not node and number:
            return True
        key = f"k:{json.dumps({'name': step.name}, separators=(',', ':'))}" if isinstance(step, Named) else f"f:{step}"
        if not isinstance(node, Mapping) or key not in node:
            return False
        node = node[key]
    return True
