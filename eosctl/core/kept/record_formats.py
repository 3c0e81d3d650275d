"""The formats in which tools print records, and the readers of those that are not eosctl's own. Pure: lines in.

FORMATS is the one table of them, and the first line with text decides. Whatever a format can't tell apart is refused
with its place: bytes that a tool replaced, headers without their values, a separator that a key may contain too. Known
of each, from its source or its output: kcat 1.7 (json.c), `rpk topic consume` (consume.go: an empty value is left out
like a null one; bytes that are not UTF-8 are replaced), DefaultMessageFormatter of Kafka 4.3.1, DumpLogSegments of
Kafka 3.3.2 to 4.4.0.

kafka-dump-log prints everything in a segment, so its markers decide here which records are committed; of the others
the tool's own option did, of which the output has no trace.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain

from msgspec import Struct, field

from eosctl.core.kept.plan_file import json_of
from eosctl.core.offsets.records import AmbiguousJsonError, strict_json
from eosctl.core.records import MOST_OFFSET, MOST_PARTITION, RECORD_HINT, UNKNOWN, Headers, Record, numbered_documents
from eosctl.core.wording import counted
from eosctl.errors import InputFileError

_REPLACED = "\N{REPLACEMENT CHARACTER}"
_NOT_TEXT = "bytes that are not UTF-8 can't be read from this format"


class RecordDump(Struct):
    """The records of a file with their line numbers; `cautions` are complete when all of these were read.

    `own_lines` are the same records where eosctl's own format has them, for readers of many.
    """

    records: Iterator[tuple[int, Record]]
    cautions: list[str] = field(default_factory=list)
    own_lines: Iterable[bytes] | None = None


class _Lines(Struct, frozen=True):
    """The numbered lines of a file, without their ends, and the errors that name one."""

    name: str
    lines: Iterator[tuple[int, str]]

    def error(self, number: int, problem: str, hint: str | None = None) -> InputFileError:
        """Return the error that names file and line."""
        hint = hint or "Nothing was read. `kcat -J` and `eosctl offsets export` print records whole."
        return InputFileError(f"{self.name}, line {number}: {problem}", hint=hint)


class RecordFormat(Struct, frozen=True):
    """One format: a first line like `begins`, or one that is a JSON object with one of `members`; `read` reads it.

    `committed_by` is the option by which the tool leaves out aborted records, where it prints them by default.
    """

    tool: str
    read: Callable[[_Lines, list[str]], Iterator[tuple[int, Record]]]
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
    return RecordDump(form.read(_Lines(name, _decoded(every, name)), cautions), cautions)


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
            raise InputFileError(f"{name}, line {number}: {_NOT_TEXT}", hint=RECORD_HINT) from exc


def _documents(lines: _Lines) -> Iterator[tuple[int, Mapping[str, object]]]:
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


def _place_of(document: Mapping[str, object], lines: _Lines, number: int, time: str) -> tuple[str, int, int, int]:
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


def _text_of(document: Mapping[str, object], member: str, lines: _Lines, number: int) -> bytes | None:
    value = document.get(member)
    if value is None:
        return None
    if not isinstance(value, str):
        raise lines.error(
            number, f'"{member}" is not text: the tool has decoded it', "Print it without a decoder (-s)."
        )
    if _REPLACED in value:
        raise lines.error(number, f'"{member}": {_NOT_TEXT}', RECORD_HINT)
    return value.encode()


def _read_kcat(lines: _Lines, _cautions: list[str]) -> Iterator[tuple[int, Record]]:
    for number, document in _documents(lines):
        if not {"key", "payload"} <= document.keys() or {"key_error", "payload_error"} & document.keys():
            raise lines.error(number, "key or payload is missing: the tool was to decode it, and could not")
        place = _place_of(document, lines, number, "ts")
        key, value = (_text_of(document, member, lines, number) for member in ("key", "payload"))
        yield number, Record(*place, key, value, _kcat_headers(document.get("headers"), lines, number))


def _kcat_headers(found: object, lines: _Lines, number: int) -> Headers:
    """Read names and values in turn, as kcat prints them."""
    if found is None:
        return ()
    if not isinstance(found, list) or len(found) % 2:
        raise lines.error(number, '"headers" is not a list of names and values')
    names, values = found[::2], found[1::2]
    if not all(isinstance(name, str) for name in names) or not all(isinstance(each, str | None) for each in values):
        raise lines.error(number, '"headers" is not a list of names and values')
    return tuple((name, None if value is None else value.encode()) for name, value in zip(names, values, strict=True))


def _read_rpk(lines: _Lines, _cautions: list[str]) -> Iterator[tuple[int, Record]]:
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


def _read_console(lines: _Lines, _cautions: list[str]) -> Iterator[tuple[int, Record]]:
    separator: str | None = None
    for number, line in lines.lines:
        if not line.strip():
            continue
        separator = separator or _separator(line)
        found: dict[str, int] = {}
        rest = line
        while (column := _COLUMN.match(rest)) and rest.startswith(separator, column.end()):
            texts = {name: text for name, text in column.groupdict().items() if text is not None}
            found |= {name: _number(text, name, lines, number) for name, text in texts.items()}
            rest = rest[column.end() + len(separator) :]
        key, value = _key_and_value(rest, separator, lines, number)
        partition, offset, time = (found.get(name, UNKNOWN) for name in ("partition", "offset", "time"))
        yield number, Record("", partition, offset, time, key, value)


def _number(text: str, name: str, lines: _Lines, line: int) -> int:
    """Return a partition, offset or time in plain text; raise InputFileError for one that Kafka can't have."""
    number, most = int(text), MOST_PARTITION if name == "partition" else MOST_OFFSET
    if not UNKNOWN <= number <= most:
        raise lines.error(line, f"the {name} is not a number from 0 to {most}")
    return number


def _separator(line: str) -> str:
    """Return what stands between two columns, or behind a key that is JSON; a tab where the line does not show it."""
    column = _COLUMN.match(line)
    if column is not None:
        following = _COLUMN.search(line, column.end())
        between_columns = line[column.end() : following.start()] if following else ""
        return between_columns if re.fullmatch(r"\W{1,16}", between_columns) else "\t"
    try:
        _key, end = json.JSONDecoder().raw_decode(line)
    except (ValueError, RecursionError):
        return "\t"
    between = re.compile(r"([^{\[\"]{1,16}?)(?:\{|null$)").match(line, end)
    return "\t" if between is None else between[1]


def _key_and_value(rest: str, separator: str, lines: _Lines, number: int) -> tuple[bytes | None, bytes | None]:
    """Split key and value where only one split gives a key of Connect's topics and a value in JSON."""
    splits = (found.start() for found in re.finditer(f"(?={re.escape(separator)})", rest))
    pairs = [(rest[:at], rest[at + len(separator) :]) for at in splits]
    fitting = [(key, value) for key, value in pairs if _is_key(key, separator) and (not value or _is_json(value))]
    if len(fitting) != 1:
        raise lines.error(number, "key and value can't be told apart", _CONSOLE_HINT)
    [(key, value)] = fitting
    return _or_null(key), _or_null(value)


def _or_null(text: str) -> bytes | None:
    return None if text == "null" else text.encode()


def _is_key(text: str, separator: str) -> bool:
    return _is_json(text) if text.startswith("[") else separator not in text and bool(_CONFIG_KEY.fullmatch(text))


def _is_json(text: str) -> bool:
    try:
        strict_json(text)
    except AmbiguousJsonError:
        return True
    except (ValueError, RecursionError):
        return False
    return True


_DUMPED = re.compile(r"Dumping (?:.*[/\\])?(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>\d{1,10})[/\\][^/\\]+$")
_BATCH = re.compile(
    r"baseOffset: \d+ .*?producerId: (?P<producer>-?\d+) .*?isTransactional: (?P<transactional>true|false) .*"
    r"isvalid: (?P<valid>true|false)"
)
_DUMP_RECORD = re.compile(
    r"\| offset: (?P<offset>\d{1,19}) \w+: (?P<time>-?\d{1,19}) keySize: (?P<key>-?\d{1,10}) valueSize: "
    r"(?P<value>-?\d{1,10})(?: sequence: -?\d+ headerKeys: \[(?P<headers>.*?)\])?(?P<rest>.*)"
)
_MARKER = re.compile(r" endTxnMarker: (COMMIT|ABORT) ")
_AROUND = re.compile(r"Log starting offset: |Found timestamp mismatch|Mismatches in|Snapshot end offset|\s*$")


class _Dumped(Struct):
    """A record of a dump, and the transaction's producer; `is_aborted` once its marker has been read."""

    number: int
    record: Record
    producer: int | None
    is_aborted: bool = False


def _read_dump_log(lines: _Lines, cautions: list[str]) -> Iterator[tuple[int, Record]]:
    """Read a dump of segments as a consumer of committed records would: without aborted ones, up to the LSO."""
    found, opened = list[_Dumped](), dict[tuple[str, int, int], list[_Dumped]]()
    topic, partition, producer, has_batch = "", UNKNOWN, UNKNOWN, False
    for number, line in lines.lines:
        if line.startswith("Dumping "):
            named = _DUMPED.match(line)
            topic = named["topic"] if named else ""
            partition = _number(named["partition"], "partition", lines, number) if named else UNKNOWN
        elif batch := _BATCH.match(line):
            if batch["valid"] == "false":
                raise lines.error(number, "the batch is damaged: its checksum is wrong")
            producer, has_batch = int(batch["producer"]) if batch["transactional"] == "true" else UNKNOWN, True
        elif head := _DUMP_RECORD.match(line):
            if not has_batch:
                raise lines.error(number, "the batch of this record is missing, and so whether it is committed")
            its = (topic, partition, producer)
            if marker := _MARKER.match(head["rest"]):
                for each in opened.pop(its, []):
                    each.is_aborted = marker[1] == "ABORT"
                continue
            record = _dumped_record(head, topic, partition, lines, number)
            found.append(_Dumped(number, record, None if producer == UNKNOWN else producer))
            if producer != UNKNOWN:
                opened.setdefault(its, []).append(found[-1])
        elif not _AROUND.match(line):
            raise lines.error(number, "not a line of kafka-dump-log.sh --print-data-log", _DUMP_HINT)
    yield from _committed(found, opened, lines.name, cautions)


_DUMP_HINT = "Make it with --print-data-log, without a decoder and without --skip-record-metadata."


def _committed(
    found: list[_Dumped], opened: Mapping[tuple[str, int, int], list[_Dumped]], name: str, cautions: list[str]
) -> Iterator[tuple[int, Record]]:
    """Yield the records that are not aborted, below the first that belongs to a transaction without its marker."""
    stable: dict[tuple[str, int], int] = {}
    for (topic, partition, _producer), records in opened.items():
        first = records[0].record.offset
        stable[topic, partition] = min(stable.get((topic, partition), first), first)
    behind = 0
    for each in found:
        if each.record.offset >= stable.get((each.record.topic, each.record.partition), MOST_OFFSET):
            behind += 1
        elif not each.is_aborted:
            yield each.number, each.record
    if behind:
        left_out = counted(behind, "record is", "records are")
        cautions.append(f"{name} ends within a transaction: {left_out} left out, from its first record on")


def _dumped_record(head: re.Match[str], topic: str, partition: int, lines: _Lines, number: int) -> Record:
    """Cut key and value out by the sizes that the line states; a value of several lines goes on in the next ones."""
    if head["headers"]:
        raise lines.error(number, "the record has headers, whose values are not in the file")
    rest = head["rest"].encode()
    parts = list[bytes | None]()
    for label, size in ((b" key: ", int(head["key"])), (b" payload: ", int(head["value"]))):
        if size < 0:
            parts.append(None)
            continue
        while len(rest) < len(label) + size and (more := next(lines.lines, None)) is not None:
            rest += b"\n" + more[1].encode()
        part = rest.removeprefix(label)[:size]
        if not rest.startswith(label) or len(part) != size or _REPLACED.encode() in part:
            raise lines.error(number, f"key or value has another size than the line states: {_NOT_TEXT}")
        rest = rest[len(label) + size :]
        parts.append(part)
    if rest:
        raise lines.error(number, f"there is more than key and value have bytes: {_NOT_TEXT}")
    key, value = parts
    offset, time = (_number(head[name], name, lines, number) for name in ("offset", "time"))
    return Record(topic, partition, offset, time, key, value)


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
        _read_dump_log,
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
