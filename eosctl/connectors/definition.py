"""Reads the definition of a connector from a file: JSON, YAML, or Strimzi's KafkaConnector.

JSON is the body of `POST /connectors`, the answer of `GET /connectors/NAME` (its `tasks` and `type` are what Connect
made of it), or the config alone, with its `name`; YAML is the same. A value has the text that Connect would make of it:
Jackson (`StringDeserializer`) takes a number as it is written, and Strimzi's operator (`KafkaConnectorConfiguration`)
as Java prints what Kubernetes keeps, where 2.0 is 2. References of config providers stay as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from eosctl.connectors.look import PAUSED, RUNNING, STOPPED
from eosctl.core.configs.given_settings import NAME, parse_settings
from eosctl.core.configs.records import PROPERTY
from eosctl.core.java.json import double_text
from eosctl.core.kept.plan_file import yaml_of
from eosctl.core.offsets.records import quoted_name
from eosctl.errors import InputFileError, UsageError

STDIN = "-"
_LARGEST_EXACT = 1 << 53
_LARGEST_BYTES = 1 << 20  # of a record, and so of a config, in a topic with the brokers' defaults
_STATES = (RUNNING, PAUSED, STOPPED)
_OF_BODY = {"name", "config", "initial_state", "tasks", "type"}
_STRIMZI = "KafkaConnector"
_CLUSTER_LABEL = "strimzi.io/cluster"
_SPEC = {"class": PROPERTY, "tasksMax": "tasks.max", "version": "connector.plugin.version"}
"""What `AbstractConnectOperator.asJson` of Strimzi's operator makes of the members of `spec`."""
_SEPARATOR = re.compile(r"(?m)^---(?:[ \t].*)?$")
_CONTENT = re.compile(r"(?m)^[ \t]*[^\s#]")


class _Number(str):
    """A number, as it is written."""


class ConnectorDefinition(Struct, frozen=True):
    """A connector as it is to be; `state` is the one that it is to reach, None where the file does not say.

    `config` has the name, too. `cluster` is the KafkaConnect resource that a KafkaConnector of Strimzi's belongs to.
    """

    name: str
    config: Mapping[str, str]
    source: str
    state: str | None = None
    cluster: str | None = None
    __repr__ = object.__repr__  # the config may hold secrets

    def changed(self, *, name: str | None = None, settings: Sequence[str] = ()) -> ConnectorDefinition:
        """Return the definition under another name, with these settings (`KEY=VALUE`); raises UsageError."""
        name = name or self.name
        changed = {**self.config, **parse_settings(settings, name_option="--name"), NAME: name}
        return replace(self, name=name, config=changed)


def read_definition(path: str, *, stdin: BinaryIO, name: str | None = None) -> ConnectorDefinition:
    """Read the definition in a file, `-` is `stdin`; `name` is the connector's where the file has none.

    Raises InputFileError that names the file and the place in it.
    """
    shown = "stdin" if path == STDIN else path
    try:
        if path == STDIN:
            content = stdin.read(_LARGEST_BYTES + 1)
        else:
            with Path(path).expanduser().open("rb") as file:
                content = file.read(_LARGEST_BYTES + 1)
    except OSError as exc:
        raise InputFileError(f"cannot read {path}: {exc.strerror or exc}", hint="Check the path.") from exc
    if len(content) > _LARGEST_BYTES:
        raise InputFileError(f"{shown} is larger than {_LARGEST_BYTES >> 20} MiB, which no connector's config is")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputFileError(f"{shown} is not in UTF-8") from None
    return parse_definition(text, source=shown, name=name)


_SHAPES = (
    'It is {"name": …, "config": {…}}, the config alone with its "name", YAML of the same, or a KafkaConnector of '
    "Strimzi's."
)


def parse_definition(text: str, *, source: str, name: str | None = None) -> ConnectorDefinition:
    """Parse the definition of one connector; raise InputFileError."""
    document = _document(text, source)
    if not isinstance(document, dict) or not document:
        raise InputFileError(f"{source} holds no connector", hint=_SHAPES)
    if document.get("kind") is not None and "apiVersion" in document:
        return _of_strimzi(document, source, name)
    if isinstance(document.get("config"), dict):
        others = sorted(str(member) for member in document.keys() - _OF_BODY)
        if others:
            raise InputFileError(f"{source}: {others[0]} is no member of a connector", hint=_SHAPES)
        config = _config(document["config"], f"{source}, config")
        given = _text(document["name"], f"{source}, name") if "name" in document else None
        state = _state(document.get("initial_state"), f"{source}, initial_state")
        return _definition(given, config, source, name, state=state)
    return _definition(None, _config(document, source), source, name)


def refuse_unusable_name(name: str) -> None:
    """Raise UsageError for a name that Connect refuses for a new connector, or changes."""
    if name != name.strip():
        raise UsageError(f"the name {name!r} begins or ends with a space, which Connect takes away")
    quoted_name(name)


def _definition(
    given: str | None,
    config: Mapping[str, str],
    source: str,
    name: str | None,
    *,
    state: str | None = None,
    cluster: str | None = None,
) -> ConnectorDefinition:
    own = config.get(NAME)
    if given is not None and own is not None and given != own:
        raise InputFileError(
            f"{source}: the connector is {given}, and the name in its config is {own}",
            hint="Connect refuses such a config. Remove one of them.",
        )
    found = name or given or own
    if not found:
        raise InputFileError(f"{source} has no name for the connector", hint="Add it, or give --name NAME.")
    try:
        refuse_unusable_name(found)
    except UsageError as exc:
        raise InputFileError(f"{source}: {exc.message}", hint=exc.hint) from exc
    if not config.get(PROPERTY):
        raise InputFileError(f"{source}: the config has no {PROPERTY}", hint="It says what the connector is.")
    try:
        json.dumps([config, cluster], ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InputFileError(f"{source}: a text in it has half of a surrogate pair, which UTF-8 can't hold") from None
    return ConnectorDefinition(found, {**config, NAME: found}, source, state, cluster)


def _of_strimzi(document: Mapping[str, object], source: str, name: str | None) -> ConnectorDefinition:
    """Read a KafkaConnector resource as Strimzi's operator does: the members of `spec` count more than its config."""
    spec, metadata = document.get("spec"), document.get("metadata")
    if document["kind"] != _STRIMZI or not isinstance(spec, dict) or not isinstance(metadata, dict):
        raise InputFileError(f"{source} is a {document['kind']}, and no {_STRIMZI} with a spec", hint=_SHAPES)
    given = spec.get("config")
    config = _config(_of_java({} if given is None else given), f"{source}, spec.config")
    config |= {
        setting: _text(_of_java(spec[member]), f"{source}, spec.{member}")
        for member, setting in _SPEC.items()
        if spec.get(member) is not None
    }
    state = _state(spec.get("state"), f"{source}, spec.state")
    if state is None and spec.get("pause") is True:
        state = PAUSED
    labels = metadata.get("labels")
    cluster = labels.get(_CLUSTER_LABEL) if isinstance(labels, dict) else None
    own = _text(metadata["name"], f"{source}, metadata.name") if "name" in metadata else None
    return _definition(own, config, source, name, state=state, cluster=None if cluster is None else str(cluster))


def _state(value: object, place: str) -> str | None:
    if value is None:
        return None
    state = str(value).upper()
    if state not in _STATES:
        raise InputFileError(f"{place}: {value!r} is no state", hint=f"It is {', '.join(_STATES)}.")
    return state


def _config(members: object, place: str) -> dict[str, str]:
    if not isinstance(members, dict):
        raise InputFileError(f"{place}: expected settings by their names", hint=_SHAPES)
    for name in members:
        if not isinstance(name, str):
            raise InputFileError(f"{place}: the name of a setting is no text: {name}", hint="Put it in quotes.")
    return {name: _text(value, f"{place}.{name}") for name, value in members.items()}


def _text(value: object, place: str) -> str:
    """Return the text that Connect makes of a value; raise InputFileError for one that is no text, number or boolean.

    The values themselves may be secrets, and are in no message.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return str(value)
    if value is None:
        raise InputFileError(f"{place} is null", hint="Connect takes no null. Remove the setting, or give it a value.")
    what = "is nested" if isinstance(value, dict | list) else f"is a {type(value).__name__}"
    raise InputFileError(
        f"{place} {what}: a setting is one text", hint="Put it in quotes, as the connector expects it."
    )


def _of_java(value: object) -> object:
    """Return a value with its numbers as Java prints those that Kubernetes keeps."""
    if isinstance(value, dict):
        return {name: _of_java(each) for name, each in value.items()}
    if not isinstance(value, _Number) or value.lstrip("-").isdigit():
        return value
    number = float(value)
    return str(int(number)) if number.is_integer() and abs(number) < _LARGEST_EXACT else double_text(number)


def _document(text: str, source: str) -> object:
    """Return the one document; in JSON each number is the text that is written there."""
    if text.lstrip().startswith(("{", "[")):
        return _json(text, source)
    parts = [part for part in _SEPARATOR.split(text) if _CONTENT.search(part)]
    if len(parts) > 1:
        raise _several(source)
    above = text[: text.index(parts[0])].count("\n") if parts else 0  # so that errors name the line
    return yaml_of("\n" * above + "".join(parts), source=source, once=True, hint=_SHAPES, number=_Number)


def _several(source: str) -> InputFileError:
    return InputFileError(f"{source} holds more than one document", hint="Give one connector at a time, each its file.")


def _json(text: str, source: str) -> object:
    def members(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _value in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise InputFileError(f"{source}: {twice} stands there twice", hint="Remove one of them.")
        return found

    try:
        return json.loads(text, object_pairs_hook=members, parse_int=_Number, parse_float=_Number, parse_constant=str)
    except json.JSONDecodeError as exc:
        if exc.msg.startswith("Extra data"):
            raise _several(source) from None
        raise InputFileError(f"{source}:{exc.lineno}: not valid JSON: {exc.msg}", hint=_SHAPES) from None
    except RecursionError:
        raise InputFileError(f"{source}: not valid JSON: it is nested too deep") from None
