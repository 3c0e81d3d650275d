"""The formats in which tools print records, and the readers of those that are not eosctl's own. Pure: lines in.

FORMATS is the one table of them, and the first line with text decides. Whatever a format can't tell apart is refused
with its place: bytes that a tool replaced, headers without their values, a separator that a key may contain too. Known
of each, from its source or its output: kcat 1.7 (json.c), `rpk topic consume` (consume.go: an empty value is left out
like a null one; bytes that are not UTF-8 are replaced), DefaultMessageFormatter of Kafka 4.3.1. `segment_dumps` reads
kafka-dump-log's, whose markers decide which records are committed; of the others the tool's own option did, of which
the output has no trace.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain

from msgspec import Struct, field

from eosctl.core.kept.plan_file import json_of
from eosctl.core.kept.printed_lines import NOT_TEXT, REPLACED, PrintedLines, read_number
from eosctl.core.kept.segment_dumps import read_segments
from eosctl.core.offsets.records import AmbiguousJsonError, strict_json
from eosctl.core.records import MOST_OFFSET, MOST_PARTITION, RECORD_HINT, UNKNOWN, Headers, Record, numbered_documents
from eosctl.errors import InputFileError


class RecordDump(Struct):
    """The records of a file with their line numbers; `cautions` are complete when all of these were read.

    `own_lines` are the same records where eosctl's own format has them, for readers of many.
    """

    records: Iterator[tuple[int, Record]]
    cautions: list[str] = field(default_factory=list)
    own_lines: Iterable[bytes] | None = None


class RecordFormat(Struct, frozen=True):
    """One format: a first line like `begins`, or one that is a JSON object with one of `members`; `read` reads it.

    `committed_by` is the option by which the tool leaves out aborted records, where it prints them by default.
    """

    tool: str
    read: Callable[[PrintedLines, list[str]], Iterator[tuple[int, Record]]]
    begins: re.Pattern[str] | None = None
    members: frozenset[str] = frozenset()
    committed_by: str = ""

    def fits(self, line: str, document: object) -> bool:
        """Decide whether a file with this first line, and the JSON document in it, has this format."""
        if document is None:
            return self.begins is not None and self.begins.match(line) is not None
        return isinstance(document, dict) and not self.members.isdisjoint(document)


def read_dump(lines: Iterable[bytes], *, name: str) -> RecordDump:
    """Recognize the format of a file and read its records; raise InputFileError that names the file and the line."""
    lines = iter(lines)
    before = list[bytes]()
    for line in lines:
        before.append(line)
        if line.strip():
            break
    every, form = chain(before, lines), _format_of(before[-1]) if before else None
    if form is None:
        own = ((number, record) for number, _document, record in numbered_documents(every, name=name))
        return RecordDump(own, own_lines=every)
    cautions = list[str]()
    if form.committed_by:
        cautions.append(f"{name} may hold aborted records: {form.tool} prints them unless run with {form.committed_by}")
    return RecordDump(form.read(PrintedLines(name, _decoded(every, name)), cautions), cautions)


def _format_of(first: bytes) -> RecordFormat | None:
    """Return the format of another tool that the first line shows; None where it is eosctl's own, or of no format."""
    try:
        line = first.decode().strip("\r\n")
    except UnicodeDecodeError:
        return None
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict) and "timestamp_ms" in document:
        return None
    return next((each for each in FORMATS if each.fits(line, document)), None)


def _decoded(lines: Iterable[bytes], name: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(lines, start=1):
        try:
            yield number, line.decode().removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as exc:
            raise InputFileError(f"{name}, line {number}: {NOT_TEXT}", hint=RECORD_HINT) from exc


def _documents(lines: PrintedLines) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield JSON objects of a line each, or of several whose last is a closing brace, with the line that begins one."""
    some, first = list[str](), 0
    for number, line in lines.lines:
        if not some and not line.strip():
            continue
        first = first if some else number
        some.append(line)
        if (len(some) > 1 and line != "}") or (len(some) == 1 and line.strip() == "{"):
            continue
        try:
            document = json_of("\n".join(some))
        except ValueError as exc:
            raise lines.error(first, f"not a record: {exc}") from exc
        if not isinstance(document, dict):
            raise lines.error(first, "not a record: expected a JSON object")
        yield first, document
        some = []
    if some:
        raise lines.error(first, "the record that begins here is cut off")


def _place_of(document: Mapping[str, object], lines: PrintedLines, number: int, time: str) -> tuple[str, int, int, int]:
    """Return topic, partition, offset and timestamp of a JSON record."""
    topic = document.get("topic")
    if not isinstance(topic, str) or not topic:
        raise lines.error(number, '"topic" is missing')
    found = []
    for member, most in (("partition", MOST_PARTITION), ("offset", MOST_OFFSET), (time, MOST_OFFSET)):
        value = document.get(member, UNKNOWN if member == time else None)
        if isinstance(value, bool) or not isinstance(value, int) or not UNKNOWN <= value <= most:
            raise lines.error(number, f'"{member}" is not a number from 0 to {most}')
        found.append(value)
    return topic, found[0], found[1], found[2]


def _text_of(document: Mapping[str, object], member: str, lines: PrintedLines, number: int) -> bytes | None:
    value = document.get(member)
    if value is None:
        return None
    if not isinstance(value, str):
        raise lines.error(
            number, f'"{member}" is not text: the tool has decoded it', "Print it without a decoder (-s)."
        )
    if REPLACED in value:
        raise lines.error(number, f'"{member}": {NOT_TEXT}', RECORD_HINT)
    return value.encode()


def _read_kcat(lines: PrintedLines, _cautions: list[str]) -> Iterator[tuple[int, Record]]:
    for number, document in _documents(lines):
        if not {"key", "payload"} <= document.keys() or {"key_error", "payload_error"} & document.keys():
            raise lines.error(number, "key or payload is missing: the tool was to decode it, and could not")
        place = _place_of(document, lines, number, "ts")
        key, value = (_text_of(document, member, lines, number) for member in ("key", "payload"))
        yield number, Record(*place, key, value, _kcat_headers(document.get("headers"), lines, number))


def _kcat_headers(found: object, lines: PrintedLines, number: int) -> Headers:
    """Read names and values in turn, as kcat prints them."""
    if found is None:
        return ()
    if not isinstance(found, list) or len(found) % 2:
        raise lines.error(number, '"headers" is not a list of names and values')
    names, values = found[::2], found[1::2]
    if not all(isinstance(name, str) for name in names) or not all(isinstance(each, str | None) for each in values):
        raise lines.error(number, '"headers" is not a list of names and values')
    if any(REPLACED in each for each in found if each):
        raise lines.error(number, f'"headers": {NOT_TEXT}', RECORD_HINT)
    return tuple((name, None if value is None else value.encode()) for name, value in zip(names, values, strict=True))


def _read_rpk(lines: PrintedLines, _cautions: list[str]) -> Iterator[tuple[int, Record]]:
    for number, document in _documents(lines):
        if "value_size" in document:
            raise lines.error(number, "the values are not in the file (--meta-only)", "Print them: leave it out.")
        place = _place_of(document, lines, number, "timestamp")
        key, value = (_text_of(document, member, lines, number) for member in ("key", "value"))
        if key is not None and key.startswith(b"\0"):
            raise lines.error(number, "a control record", "Leave out --print-control-records.")
        headers = document.get("headers", [])
        if not isinstance(headers, list) or not all(isinstance(each, dict) for each in headers):
            raise lines.error(number, '"headers" is not a list of keys and values')
        pairs = [tuple(_text_of(each, member, lines, number) or b"" for member in ("key", "value")) for each in headers]
        yield number, Record(*place, key, value, tuple((name.decode(), text) for name, text in pairs))


_COLUMN = re.compile(
    r"(?:CreateTime|LogAppendTime):(?P<time>-?\d{1,19})|NO_TIMESTAMP|Partition:(?P<partition>\d{1,10})"
    r"|Offset:(?P<offset>\d{1,19})|Delivery:\S+|Epoch:\S+|NO_HEADERS"
)
_CONFIG_KEY = re.compile(
    r"(connector|task|commit|target-state|tasks-fencing|restart-connector|logger-cluster|status-\w+)-.+|session-key|null"
)
_CONSOLE_HINT = (
    "Print keys: --property print.key=true, with key.separator as it is (a tab). Values of several lines, and headers, "
    "can't be read back: `kcat -J` prints them whole."
)


def _read_console(lines: PrintedLines, _cautions: list[str]) -> Iterator[tuple[int, Record]]:
    separator: str | None = None
    for number, line in lines.lines:
        if not line.strip():
            continue
        separator = separator or _separator(line)
        found: dict[str, int] = {}
        rest = line
        while (column := _COLUMN.match(rest)) and rest.startswith(separator, column.end()):
            texts = {name: text for name, text in column.groupdict().items() if text is not None}
            found |= {name: read_number(text, name, lines, number) for name, text in texts.items()}
            rest = rest[column.end() + len(separator) :]
        key, value = _key_and_value(rest, separator, lines, number)
        partition, offset, time = (found.get(name, UNKNOWN) for name in ("partition", "offset", "time"))
        yield number, Record("", partition, offset, time, key, value)


def _separator(line: str) -> str:
    """Return what stands between two columns, or behind a key that is JSON; a tab where the line does not show it."""
    column = _COLUMN.match(line)
    if column is not None:
        following = _COLUMN.search(line, column.end())
        between_columns = line[column.end() : following.start()] if following else ""
        return between_columns if re.fullmatch(r"\W{1,16}", between_columns) else "\t"
    end = _end_of_json(line)
    if end is None:
        return "\t"
    between = re.compile(r"([^{\[\"]{1,16}?)(?:\{|null$)").match(line, end)
    return "\t" if between is None else between[1]


def _key_and_value(rest: str, separator: str, lines: PrintedLines, number: int) -> tuple[bytes | None, bytes | None]:
    """Split key and value where only one split gives a key of Connect's topics and a value in JSON."""
    pairs = [(rest[:at], rest[at + len(separator) :]) for at in _key_ends(rest, separator)]
    fitting = [(key, value) for key, value in pairs if not value or _is_json(value)]
    if len(fitting) != 1:
        raise lines.error(number, "key and value can't be told apart", _CONSOLE_HINT)
    [(key, value)] = fitting
    return _or_null(key), _or_null(value)


def _key_ends(text: str, separator: str) -> Iterator[int]:
    """Yield where a key may end: behind the JSON array that the text begins with, else before a first separator."""
    if text.startswith("["):
        end = _end_of_json(text)
        if end is not None and text.startswith(separator, end):
            yield end
        return
    at = text.find(separator)
    while at >= 0 and separator not in text[:at]:
        if _CONFIG_KEY.fullmatch(text, 0, at):
            yield at
        at = text.find(separator, at + 1)


def _end_of_json(text: str) -> int | None:
    """Return where the JSON value ends with which a text begins; None for another text."""
    try:
        return json.JSONDecoder().raw_decode(text)[1]
    except (ValueError, RecursionError):
        return None


def _or_null(text: str) -> bytes | None:
    return None if text == "null" else text.encode()


def _is_json(text: str) -> bool:
    try:
        strict_json(text)
    except AmbiguousJsonError:
        return True
    except (ValueError, RecursionError):
        return False
    return True


FORMATS: tuple[RecordFormat, ...] = (
    RecordFormat("kcat -J", _read_kcat, members=frozenset({"payload", "tstype"})),
    RecordFormat(
        "rpk topic consume",
        _read_rpk,
        begins=re.compile(r"\{\s*$"),
        members=frozenset({"timestamp", "value_size"}),
        committed_by="--read-committed",
    ),
    RecordFormat(
        "kafka-dump-log.sh",
        read_segments,
        begins=re.compile(r"Dumping |Log starting offset|baseOffset: |\| offset: "),
    ),
    RecordFormat(
        "kafka-console-consumer.sh",
        _read_console,
        begins=re.compile(rf"(?:CreateTime|LogAppendTime|Partition|Offset):|NO_TIMESTAMP|\[|{_CONFIG_KEY.pattern}"),
        committed_by="--isolation-level read_committed",
    ),
)
"""The formats besides eosctl's own, in which a line has `timestamp_ms` or none of these members."""
