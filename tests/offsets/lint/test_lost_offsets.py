"""Which offsets tasks do not see, which went back, and the words, evidence and commands that doctor has for them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any, cast

import pytest

from eosctl.core.findings import Finding
from eosctl.core.offsets.views import fold_store
from eosctl.core.records import Bounds, Record, TopicRead
from eosctl.offsets.history.rules import OffsetHistory
from eosctl.offsets.lint.rules import WatchedTopic, lost_offsets

GLOBAL, OWN, FORMER = "connect-offsets", "c-offsets", "c-former"
F, G, H = (f'["c",{{"filename":"/{name}"}}]'.encode() for name in "fgh")


def at(position: int) -> bytes:
    return f'{{"position":{position}}}'.encode()


def log(topic: str, *records: tuple[bytes, bytes | None], start_ms: int = 0) -> list[Record]:
    """One partition's records, a ms apart."""
    return [Record(topic, 0, offset, start_ms + offset, key, value) for offset, (key, value) in enumerate(records)]


def watched(topic: str, records: Sequence[Record] = (), *, meant: Sequence[Record] = ()) -> WatchedTopic:
    history = OffsetHistory(lambda _connector, record: record in meant) if meant else OffsetHistory()
    history(records)
    read = TopicRead(topic, (Bounds(0, 0, len(records), len(records)),), tuple(records), len(records))
    return WatchedTopic(fold_store(read), history, written=bool(records))


def judged(common: WatchedTopic, own: WatchedTopic | None = None, former: WatchedTopic | None = None) -> list[Finding]:
    return lost_offsets(
        common,
        {} if own is None else {"c": own},
        ["c"],
        show_time=lambda moment_ms: f"at-{moment_ms}",
        former={} if former is None else {"c": former.store},
    )


def the_one(found: Sequence[Finding]) -> Finding:
    [finding] = found
    return finding


def commands(finding: Finding) -> list[str]:
    """The commands of a fix between the stop and the resume."""
    return (
        finding.fix.partition("`eosctl connectors stop c`, ")[2]
        .partition(", `eosctl connectors resume c`")[0]
        .split(", ")
    )


def cell(topic: str, offset: int, position: int, timestamp_ms: int) -> dict[str, Any]:
    place = {"topic": topic, "partition": 0, "offset": offset, "timestamp_ms": timestamp_ms}
    return place | {"value": at(position).decode()}


def test_the_evidence_of_hidden_offsets() -> None:
    found = the_one(judged(watched(GLOBAL, log(GLOBAL, (F, at(1)), (G, at(2)))), watched(OWN, log(OWN, (G, at(3))))))
    assert (found.code, found.evidence) == (
        "offsets_hidden",
        {
            "topic": OWN,
            "global_topic": GLOBAL,
            "hidden": 1,
            "offsets": 2,
            "source_partitions": [{"filename": "/f"}],
        },
    )


def test_the_evidence_of_an_empty_topic() -> None:
    found = the_one(judged(watched(GLOBAL, log(GLOBAL, (F, at(1)))), watched(OWN)))
    assert (found.code, found.evidence["hidden"], found.evidence["source_partitions"]) == (
        "offsets_topic_empty",
        1,
        [{"filename": "/f"}],
    )
    assert found.message.endswith(
        "1 of 1 offset not seen at runtime, connect-offsets has them; tasks that start read their source from the "
        "beginning"
    )


def test_the_evidence_of_what_the_former_topic_has() -> None:
    former = watched(FORMER, log(FORMER, (F, at(1)), (G, at(2)), (H, None)))
    found = the_one(judged(watched(GLOBAL, log(GLOBAL, (G, at(2)))), former=former))
    assert found.evidence == {
        "topic": FORMER,
        "global_topic": GLOBAL,
        "hidden": 1,
        "offsets": 2,
        "source_partitions": [{"filename": "/f"}],
    }


@pytest.mark.parametrize(("deleted_ms", "hidden"), [(9, True), (10, False), (11, False)])
def test_a_deletion_as_young_as_the_copy_is_a_reset(deleted_ms: int, hidden: bool) -> None:
    common = watched(GLOBAL, log(GLOBAL, (F, at(1)), start_ms=10))
    own = watched(OWN, log(OWN, (F, None), start_ms=deleted_ms))
    assert bool(judged(common, own)) == hidden


def test_the_evidence_of_what_went_back() -> None:
    found = the_one(judged(watched(GLOBAL, log(GLOBAL, (F, at(40)), (F, at(3)), (F, at(7)), start_ms=100))))
    assert (found.code, found.evidence) == (
        "offsets_went_back",
        {
            "topic": GLOBAL,
            "offsets": [
                {
                    "source_partition": {"filename": "/f"},
                    "former": cell(GLOBAL, 0, 40, 100),
                    "back": cell(GLOBAL, 1, 3, 101),
                    "now": cell(GLOBAL, 2, 7, 102),
                }
            ],
            "went_back": 1,
        },
    )
    assert "and so did" not in found.message


@pytest.mark.parametrize(("keys", "said"), [([F, G], "1 other offset"), ([F, G, H], "2 other offsets")])
def test_how_many_others_went_back(keys: list[bytes], said: str) -> None:
    records = log(GLOBAL, *((key, at(40)) for key in keys), *((key, at(3)) for key in keys))
    assert f", and so did {said}: what lies between" in the_one(judged(watched(GLOBAL, records))).message


def test_a_moment_before_all_of_them_is_one_command_and_a_moment_that_is_not_is_one_each() -> None:
    together = watched(GLOBAL, log(GLOBAL, (F, at(40)), (G, at(50)), (F, at(3)), (G, at(4))))
    set_ = "eosctl offsets set --connector c --as-of"
    assert commands(the_one(judged(together))) == [f"`{set_} at-1 --from {GLOBAL}`"]
    as_old = watched(GLOBAL, [each._replace(timestamp_ms=0) for each in together.store.records.values()])
    assert not judged(as_old)
    same = [each._replace(timestamp_ms=5) for each in log(GLOBAL, (F, at(40)), (G, at(50)), (F, at(3)), (G, at(4)))]
    partitions = [shlex.quote('{"filename":"/f"}'), shlex.quote('{"filename":"/g"}')]
    assert commands(the_one(judged(watched(GLOBAL, same)))) == [
        f"`{set_} 0 --from {GLOBAL} --partition {partitions[0]}`",
        f"`{set_} 1 --from {GLOBAL} --partition {partitions[1]}`",
    ]


def test_keys_are_named_where_its_own_topic_has_more_than_went_back() -> None:
    own = log(OWN, (F, at(40)), (G, at(40)), (H, at(1)), (F, at(3)), (G, at(3)), start_ms=20)
    [command] = commands(the_one(judged(watched(GLOBAL, log(GLOBAL, (F, at(1)))), watched(OWN, own))))
    assert command.count(" --partition ") == 2


def test_more_commands_than_anybody_pastes_are_counted() -> None:
    keys = [f'["c",{{"filename":"/{number}"}}]'.encode() for number in range(5)]
    each_after_the_other = [pair for key in keys for pair in ((key, at(40)), (key, at(3)))]
    found = the_one(judged(watched(GLOBAL, log(GLOBAL, *each_after_the_other))))
    assert commands(found)[3:] == ["and so for 2 more (`eosctl offsets log --connector c` shows their places)"]


def test_an_offset_that_is_no_json_any_more_is_not_ordered() -> None:
    """Nobody can say where it lies; the next one that can be read is compared with the one before."""
    assert not judged(watched(GLOBAL, log(GLOBAL, (F, at(40)), (F, b"{"))))
    assert the_one(judged(watched(GLOBAL, log(GLOBAL, (F, at(40)), (F, b"{"), (F, at(3))))))


@pytest.mark.parametrize(
    ("own", "common", "former_at"),
    [
        # what it has itself is further on than the copies
        (log(OWN, (F, at(40)), (F, at(3)), start_ms=20), log(GLOBAL, (F, at(10))), (OWN, 40)),
        # the copies are further on
        (log(OWN, (F, at(3)), start_ms=20), log(GLOBAL, (F, at(40))), (GLOBAL, 40)),
        (log(OWN, (F, at(10)), (F, at(3)), start_ms=20), log(GLOBAL, (F, at(40))), (GLOBAL, 40)),
        # a deletion of the copies forgets only what was before it
        (log(OWN, (F, at(40)), (F, at(3)), start_ms=20), log(GLOBAL, (F, at(90)), (F, None)), (OWN, 40)),
        (log(OWN, (F, at(40)), (F, at(3))), log(GLOBAL, (F, at(90)), (F, None), start_ms=20), None),
        (log(OWN, (F, None), (F, at(3)), start_ms=20), log(GLOBAL, (F, at(90))), None),
        (log(OWN, (F, None), (F, at(3)), start_ms=20), log(GLOBAL, (F, at(90)), start_ms=20), None),
        (log(OWN, (F, None), (F, at(3)), start_ms=20), log(GLOBAL, (F, at(90)), start_ms=21), (GLOBAL, 90)),
        # the same in both, which went back in neither, or in the copies
        (log(OWN, (F, at(3))), log(GLOBAL, (F, at(3))), None),
        (log(OWN, (F, at(3)), start_ms=20), log(GLOBAL, (F, at(40)), (F, at(3))), (GLOBAL, 40)),
    ],
)  # fmt: skip
def test_the_furthest_of_its_own_topic_and_of_the_copies(
    own: list[Record], common: list[Record], former_at: tuple[str, int] | None
) -> None:
    found = [each for each in judged(watched(GLOBAL, common), watched(OWN, own)) if each.code == "offsets_went_back"]
    places = [place for finding in found for place in cast("list[dict[str, Any]]", finding.evidence["offsets"])]
    seen = [(each["former"]["topic"], each["former"]["value"]) for each in places]
    assert seen == ([] if former_at is None else [(former_at[0], at(former_at[1]).decode())])


def test_the_first_that_lay_before_the_copies_is_the_older_of_both_topics() -> None:
    common = watched(GLOBAL, log(GLOBAL, (F, at(90)), (F, at(5)), start_ms=10))
    own = watched(OWN, log(OWN, (F, at(40)), (F, at(3)), start_ms=20))
    assert "(connect-offsets-0 offset 1)" in the_one(judged(common, own)).message
    later = watched(OWN, log(OWN, (F, at(40)), (F, at(3)), start_ms=0))
    assert "(c-offsets-0 offset 1)" in the_one(judged(common, later)).message


def test_what_is_well_in_its_own_topic_does_not_end_the_look_at_the_rest() -> None:
    """One key is deleted, one is the same in both, and the third went back."""
    own = watched(OWN, log(OWN, (F, None), (G, at(1)), (H, at(40)), (H, at(3)), start_ms=20))
    common = watched(GLOBAL, log(GLOBAL, (G, at(1))))
    finding = the_one(judged(common, own))
    assert finding.message.startswith('c: the offset of {"filename":"/h"} went back')


@pytest.mark.parametrize(("deleted_ms", "back"), [(9, True), (10, True), (11, False)])
def test_the_former_topic_is_further_on_unless_the_offset_was_deleted_since(deleted_ms: int, back: bool) -> None:
    former = watched(FORMER, log(FORMER, (G, at(1)), (F, at(40)), start_ms=9))
    deleted, new = log(GLOBAL, (F, None), (F, at(3)), start_ms=deleted_ms)
    common = watched(GLOBAL, [*log(GLOBAL, (G, at(1))), deleted._replace(offset=1), new._replace(offset=2)])
    assert [each.code for each in judged(common, former=former)] == (["offsets_went_back"] if back else [])


def test_what_somebody_set_behind_the_former_topic_was_meant() -> None:
    records = log(GLOBAL, (F, at(3)), start_ms=20)
    former = watched(FORMER, log(FORMER, (F, at(40))))
    assert the_one(judged(watched(GLOBAL, records), former=former))
    assert not judged(watched(GLOBAL, records, meant=records), former=former)


def test_what_somebody_set_is_where_the_offset_counts_from() -> None:
    records = log(GLOBAL, (F, at(40)), (F, at(3)), (F, at(7)))
    assert not judged(watched(GLOBAL, records, meant=records[1:2]))


def test_records_without_a_key_and_of_others_do_not_end_the_history() -> None:
    foreign = [
        Record(GLOBAL, 0, 0, 0, None, b"{}"),
        Record(GLOBAL, 0, 1, 0, b"x", b"1"),
        Record(GLOBAL, 0, 2, 0, b"x", b"0"),
    ]
    records = [*foreign, *(each._replace(offset=each.offset + 3) for each in log(GLOBAL, (F, at(40)), (F, at(3))))]
    assert the_one(judged(watched(GLOBAL, records))).evidence["went_back"] == 1


def test_offsets_that_cannot_be_read_are_no_deletion() -> None:
    """A deletion in between was meant; a value that is no JSON was not."""
    assert not judged(watched(GLOBAL, log(GLOBAL, (F, at(40)), (F, None), (F, at(3)))))
    assert the_one(judged(watched(GLOBAL, log(GLOBAL, (F, at(40)), (F, b"["), (F, at(3))))))


def test_a_source_partition_that_no_json_can_show_is_its_bytes() -> None:
    deep = b'["c",{"filename":' + b"[" * 850 + b"1.5" + b"]" * 850 + b"}]"
    finding = the_one(judged(watched(GLOBAL, log(GLOBAL, (deep, at(1)))), watched(OWN)))
    assert finding.evidence["source_partitions"] == [deep.decode()]
