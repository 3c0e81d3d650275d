"""Report -> JSON, YAML or NDJSON: what programs read. The same members in the same order, nothing left out.

JSON and YAML are one document each, also of a command that failed. NDJSON is the rows alone, one a line as they come:
what went wrong is on stderr and in the exit code, so that a consumer never has to tell a row from anything else.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import IO, Any

from eosctl.report import Report, row_texts

_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode  # dumps makes an encoder per call


def write_json(report: Report, stream: IO[str]) -> None:
    """The envelope with a row per line: no more than one row is in memory as text, and a line can be grepped for."""
    frame = json.dumps(replace(report, rows=()).envelope(), ensure_ascii=False, indent=2)
    head, empty, tail = frame.partition('"rows": []')
    stream.write(head + empty[:-1])
    for number, text in enumerate(row_texts(report.rows, _encode)):
        stream.write((",\n      " if number else "\n      ") + text)
    stream.write(("\n    ]" if report.rows else "]") + tail + "\n")


def write_ndjson(report: Report, stream: IO[str]) -> None:
    """One row a line, written as it is taken from `report.rows`; none is kept."""
    for text in row_texts(report.rows, _encode):
        stream.write(text + "\n")


def write_yaml(report: Report, stream: IO[str]) -> None:
    """The envelope; `yaml.safe_load` gives what `json.loads` gives of the JSON document."""
    import yaml

    plain = json.loads(json.dumps(report.envelope(), ensure_ascii=False))  # no tuples, no enums: safe_load knows none
    yaml.dump(plain, stream, Dumper=_plain_dumper(), sort_keys=False, allow_unicode=True, width=2**31 - 1)


def _plain_dumper() -> Any:
    """libyaml's dumper where it is there (many times as fast), without `&id001` for values that appear twice."""
    import yaml

    class PlainDumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # one of two classes
        def ignore_aliases(self, _data: object) -> bool:
            return True

    return PlainDumper
