"""Writes a Report as JSON, YAML or NDJSON, for programs: the same members in the same order, nothing left out.

JSON and YAML are one document each, also for a failed command. NDJSON has only the rows, one a line as they come:
errors are on stderr and in the exit code, so that a consumer never has to distinguish a row from anything else.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Sequence
from typing import IO, Any

import msgspec
from msgspec.structs import replace

from eosctl.foreign import json_text, yaml_text_of
from eosctl.report import Report, plain

_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode  # dumps makes an encoder per call
_quick_encode = msgspec.json.Encoder().encode
_BLOCK = 1 << 16  # characters that are written at once: a call per row takes as long as making it
_MANY_ROWS = 100  # the number of rows from which a check of their types pays off


def write_json(report: Report, stream: IO[str]) -> None:
    """Write the envelope with one row per line, so that lines can be grepped; hold only one row as text at a time."""
    frame = json.dumps(replace(report, rows=()).envelope(), ensure_ascii=False, indent=2)
    head, empty, tail = frame.partition('"rows": []')
    stream.write(json_text(head) + empty[:-1])
    for number, text in enumerate(_texts(report.rows)):
        stream.write((",\n      " if number else "\n      ") + json_text(text))
    stream.write(("\n    ]" if report.rows else "]") + json_text(tail) + "\n")


def write_ndjson(report: Report, stream: IO[str]) -> None:
    """Write one row a line, as `report.rows` yields them; buffer only a few."""
    some, size = list[str](), 0
    for text in _texts(report.rows):
        some.append(f"{text}\n")
        size += len(text)
        if size >= _BLOCK:
            stream.write(json_text("".join(some)))
            some, size = [], 0
    stream.write(json_text("".join(some)))


def _texts(rows: Sequence[object]) -> Iterable[str]:
    """Return the JSON of each row; let msgspec encode many typed rows, in a third of the time."""
    return map(_quick_text if len(rows) > _MANY_ROWS else _text, rows)


def _text(row: object) -> str:
    return _encode(plain(row))


def _quick_text(row: Any) -> str:
    if _is_exact(row.__class__):
        try:
            return msgspec.json.format(_quick_encode(row), indent=0).decode()
        except (UnicodeEncodeError, TypeError):  # half of a surrogate pair; text of a class of its own
            pass
    return _text(row)


@functools.cache
def _is_exact(row: type) -> bool:
    """Decide whether msgspec encodes rows of this class byte for byte as `json` does: some fractions differ."""
    from eosctl.output.json_schema import schema_of_type

    return issubclass(row, msgspec.Struct) and _has_no_fraction(schema_of_type(row))


def _has_no_fraction(schema: Any) -> bool:
    """Decide whether a schema allows whole numbers only."""
    if schema.get("type") == "number" or not {"type", "anyOf", "enum"} & schema.keys():
        return False
    below = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    below += [schema[name] for name in ("items", "additionalProperties") if name in schema]
    return all(map(_has_no_fraction, below))


def write_yaml(report: Report, stream: IO[str]) -> None:
    """Write the envelope; `yaml.safe_load` returns what `json.loads` returns for the JSON document."""
    stream.write(yaml_text(report.envelope()))


def yaml_text(document: object) -> str:
    """Format a document as YAML."""
    import yaml

    read = json.loads(json.dumps(document, ensure_ascii=False))  # no tuples, no enums: safe_load knows none
    text = yaml.dump(read, Dumper=_plain_dumper(), sort_keys=False, allow_unicode=True, width=2**31 - 1)
    return yaml_text_of(str(text))


def _plain_dumper() -> object:
    """Return a dumper that writes no `&id001` for repeated values; use libyaml's if available, which is much faster."""
    import yaml

    class PlainDumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # one of two classes
        def ignore_aliases(self, _data: object) -> bool:
            return True

        def represent_str(self, data: str) -> object:
            return self.represent_scalar("tag:yaml.org,2002:str", data, None if yaml_text_of(data) == data else '"')

    PlainDumper.add_representer(str, PlainDumper.represent_str)
    return PlainDumper
