"""The lines of what a tool printed of records, with the errors that name one. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from eosctl.core.records import MOST_OFFSET, MOST_PARTITION, UNKNOWN
from eosctl.errors import InputFileError

REPLACED = "\N{REPLACEMENT CHARACTER}"
NOT_TEXT = "bytes that are not UTF-8 can't be read from this format"


class PrintedLines(Struct, frozen=True):
    """The numbered lines of a file, without their ends, and the errors that name one."""

    name: str
    lines: Iterator[tuple[int, str]]

    def error(self, number: int, problem: str, hint: str | None = None) -> InputFileError:
        """Return the error that names file and line."""
        hint = hint or "Nothing was read. `kcat -J` and `eosctl offsets export` print records whole."
        return InputFileError(f"{self.name}, line {number}: {problem}", hint=hint)


def read_number(text: str, name: str, lines: PrintedLines, line: int) -> int:
    """Return a partition, offset or time in plain text; raise InputFileError for one that Kafka can't have."""
    number, most = int(text), MOST_PARTITION if name == "partition" else MOST_OFFSET
    if not UNKNOWN <= number <= most:
        raise lines.error(line, f"the {name} is not a number from 0 to {most}")
    return number
