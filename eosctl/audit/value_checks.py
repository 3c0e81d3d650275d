"""`--unique` and `--sequence`: which field is meant, and what its values in the committed records show."""

from __future__ import annotations

from collections.abc import Mapping

from eosctl.app import App
from eosctl.audit import codes
from eosctl.audit.fields import FieldRead, read_field
from eosctl.audit.log.field_paths import FieldPath, parse_field_path
from eosctl.audit.log.tallies import PlaceTally
from eosctl.audit.log.values import SequenceValues, UniqueValues
from eosctl.audit.rules import LogRead
from eosctl.audit.scope import AuditRequest
from eosctl.core.configs.classes import pruned_class
from eosctl.core.wording import counted
from eosctl.errors import UsageError
from eosctl.report import Problem

AUTO = "auto"


Fields = list[tuple[FieldPath, UniqueValues | SequenceValues]]
"""What is read, and what judges it."""


def wanted_fields(request: AuditRequest, config: Mapping[str, str]) -> Fields:
    """The fields to be read, each with what judges its values; raises UsageError for one that names nothing."""
    found: Fields = []
    if request.unique is not None:
        found.append((_unique_field(request.unique, config), UniqueValues()))
    if request.sequence is not None:
        found.append((parse_field_path(request.sequence), SequenceValues()))
    return found


def _unique_field(text: str, config: Mapping[str, str]) -> FieldPath:
    """That of JDBC is the column that it counts by, that of FileStream the line."""
    if text != AUTO:
        return parse_field_path(text)
    name = pruned_class(config)
    if name.startswith("FileStreamSource"):
        return parse_field_path("value")
    if name.startswith("JdbcSource") and (column := config.get("incrementing.column.name")):
        return FieldPath("value", (column,))
    raise UsageError(
        f"which field is unique in the records of {name or 'this connector'} is not known",
        hint="Name it, say --unique value.after.id; auto knows FileStream, and JDBC with an incrementing column.",
    )


def check_values(app: App, read: LogRead, fields: Fields) -> tuple[list[tuple[PlaceTally, str]], list[Problem]]:
    """What the values show, and what could not be read of them; each topic is read once per field."""
    found: list[tuple[PlaceTally, str]] = []
    problems: list[Problem] = []
    for path, values in fields:
        told = read_field(app, path, read.spans, values.take)
        found += [each for each in values.findings() if each not in found]  # a number that came twice is not unique
        problems += _problems(told, values)
    return found, problems


def _problems(told: FieldRead, values: UniqueValues | SequenceValues) -> list[Problem]:
    texts = []
    if told.without:
        texts.append(f"{told.without:,} of {counted(told.records, 'record')} have no such field")
    if isinstance(values, SequenceValues) and values.unreadable:
        texts.append(f"{counted(values.unreadable, 'record')} have no number at the end of the field")
    for (topic, partition), offset in sorted(told.hidden.items()):
        texts.append(f"{topic}-{partition} was read to offset {offset}, where an open transaction begins")
    return [Problem(codes.NOT_PROVEN, text, severity="warning") for text in texts]
