"""Reads what kafka-dump-log prints of segments (DumpLogSegments of Kafka 3.3.2 to 4.4.0). Pure: lines in.

It prints everything in a segment, so its markers decide here which records are committed. A marker ends what its
producer wrote before: that holds only where no segment is missing in between.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from eosctl.core.kept.printed_lines import NOT_TEXT, REPLACED, PrintedLines, read_number
from eosctl.core.records import MOST_OFFSET, UNKNOWN, Record
from eosctl.core.wording import counted

_DUMPED = re.compile(r"Dumping (?:.*[/\\])?(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>\d{1,10})[/\\][^/\\]+$")
_BATCH = re.compile(
    r"baseOffset: (?P<base>\d{1,19}) lastOffset: (?P<last>\d{1,19}) .*?producerId: (?P<producer>-?\d+) .*?"
    r"isTransactional: (?P<transactional>true|false) .*isvalid: (?P<valid>true|false)"
)
_LONGEST_BATCH = 2_000
"""No line of a batch is as long; the pattern takes the square of its length where it does not fit."""
_DUMP_RECORD = re.compile(
    r"\| offset: (?P<offset>\d{1,19}) \w+: (?P<time>-?\d{1,19}) keySize: (?P<key>-?\d{1,10}) valueSize: "
    r"(?P<value>-?\d{1,10})(?: sequence: -?\d+ headerKeys: \[(?P<headers>.*?)\])?(?P<rest>.*)"
)
_MARKER = re.compile(r" endTxnMarker: (COMMIT|ABORT) ")
_AROUND = re.compile(r"Log starting offset: |Found timestamp mismatch|Mismatches in|Snapshot end offset|\s*$")


class _Dumped(Struct):
    """A record of a dump; `is_aborted` once the marker of its transaction has been read."""

    number: int
    record: Record
    is_aborted: bool = False


def read_segments(lines: PrintedLines, cautions: list[str]) -> Iterator[tuple[int, Record]]:
    """Read a dump of segments as a consumer of committed records would: without aborted ones, up to the LSO."""
    found, opened = list[_Dumped](), dict[tuple[str, int, int], list[_Dumped]]()
    topic, partition, producer, is_first = "", UNKNOWN, UNKNOWN, True
    ends = dict[tuple[str, int], int]()
    for number, line in lines.lines:
        if line.startswith("Dumping "):
            named = _DUMPED.match(line)
            topic, is_first = named["topic"] if named else "", True
            partition = read_number(named["partition"], "partition", lines, number) if named else UNKNOWN
        elif batch := _BATCH.match(line, 0, _LONGEST_BATCH):
            base, end = int(batch["base"]), ends.get((topic, partition), 0)
            is_gap = is_first and base > end
            if base < end or (is_gap and any(each[:2] == (topic, partition) for each in opened)):
                raise lines.error(number, _out_of_order(base, end), _SEGMENTS_HINT)
            if batch["valid"] == "false":
                raise lines.error(number, "the batch is damaged: its checksum is wrong")
            producer, is_first = int(batch["producer"]) if batch["transactional"] == "true" else UNKNOWN, False
            ends[topic, partition] = int(batch["last"]) + 1
        elif head := _DUMP_RECORD.match(line):
            if (topic, partition) not in ends or is_first:
                raise lines.error(number, "the batch of this record is missing, and so whether it is committed")
            its = (topic, partition, producer)
            if marker := _MARKER.match(head["rest"]):
                for each in opened.pop(its, []):
                    each.is_aborted = marker[1] == "ABORT"
                continue
            found.append(_Dumped(number, _dumped_record(head, topic, partition, lines, number)))
            if producer != UNKNOWN:
                opened.setdefault(its, []).append(found[-1])
        elif not _AROUND.match(line):
            raise lines.error(number, "not a line of kafka-dump-log.sh --print-data-log", _DUMP_HINT)
    yield from _committed(found, opened, lines.name, cautions)


def _out_of_order(base: int, end: int) -> str:
    """Say what is wrong with a batch whose transaction's marker may not be the one that follows in the file."""
    if base < end:
        return f"offset {base} comes behind {end - 1}: the segments of the partition are not in order"
    return f"a transaction goes on at offset {end}, and this segment begins at {base}: one between them is missing"


_SEGMENTS_HINT = "Name all segments of a partition to --files in the order of their names, each with its folder."
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


def _dumped_record(head: re.Match[str], topic: str, partition: int, lines: PrintedLines, number: int) -> Record:
    """Cut key and value out by the sizes that the line states; a value of several lines goes on in the next ones."""
    if head["headers"]:
        raise lines.error(number, "the record has headers, whose values are not in the file")
    rest = bytearray(head["rest"].encode())
    parts = list[bytes | None]()
    for label, size in ((b" key: ", int(head["key"])), (b" payload: ", int(head["value"]))):
        if size < 0:
            parts.append(None)
            continue
        while len(rest) < len(label) + size and (more := next(lines.lines, None)) is not None:
            rest += b"\n" + more[1].encode()
        part = rest.removeprefix(label)[:size]
        if not rest.startswith(label) or len(part) != size or REPLACED.encode() in part:
            raise lines.error(number, f"key or value has another size than the line states: {NOT_TEXT}")
        rest = rest[len(label) + size :]
        parts.append(bytes(part))
    if rest:
        raise lines.error(number, f"there is more than key and value have bytes: {NOT_TEXT}")
    key, value = parts
    offset, time = (read_number(head[name], name, lines, number) for name in ("offset", "time"))
    return Record(topic, partition, offset, time, key, value)
