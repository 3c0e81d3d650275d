"""Which records of a config topic `task-counts clean` has compacted away, and what has to stand over them first."""

from __future__ import annotations

import pytest

from eosctl.core.configs.fold import fold_config_topic
from eosctl.core.configs.view import bad_records, forgotten_by_compaction
from eosctl.core.records import Record

CONFIG = (b"connector-c", b'{"properties":{"name":"c"}}')
COMMIT, BAD_COMMIT = (b"commit-c", b'{"tasks":0}'), (b"commit-c", b'{"tasks":"0"}')
GOOD, BAD = (b"tasks-fencing-c", b'{"task-count":2}'), (b"tasks-fencing-c", b'{"tasks":2}')
TOMBSTONE, NO_JSON = (b"tasks-fencing-c", None), (b"tasks-fencing-c", b"{")
NO_KEY = (None, b"{}")
ONCE_MORE = {"first": 2, "anew": ""}
NOTHING = {"first": None, "anew": ""}
STOP_AND_RESUME = "`eosctl connectors stop c` (Kafka 3.5 or newer), then `eosctl connectors resume c`"
ANEW = f"{STOP_AND_RESUME} (the leader writes it anew; only with exactly-once)"
TASKS_ANEW = f"{STOP_AND_RESUME} (it writes its tasks anew)"


@pytest.mark.parametrize(
    ("records", "found"),
    [
        ([GOOD], {}),
        ([BAD, GOOD], {1: NOTHING}),
        ([GOOD, BAD], {2: ONCE_MORE}),
        ([GOOD, BAD, BAD], {2: NOTHING, 3: ONCE_MORE}),
        ([GOOD, BAD, TOMBSTONE], {2: NOTHING, 3: ONCE_MORE}),
        ([GOOD, TOMBSTONE], {2: ONCE_MORE}),
        ([GOOD, COMMIT, NO_JSON], {3: {"first": None, "anew": ANEW}}),
        ([BAD], {1: {"first": None, "anew": ANEW}}),
        ([GOOD, COMMIT, BAD], {3: {"first": None, "anew": ANEW}}),
        ([COMMIT, GOOD, BAD], {3: ONCE_MORE}),
        ([BAD_COMMIT], {1: {"first": None, "anew": TASKS_ANEW}}),
        ([BAD_COMMIT, COMMIT], {1: NOTHING}),
        ([NO_KEY], {1: NOTHING}),
        ([TOMBSTONE, NO_JSON, GOOD], {1: NOTHING, 2: NOTHING}),
        ([TOMBSTONE], {}),
        ([(b"task-count-c", b'{"tasks":2}'), (b"task-count-c", b'{"tasks":2}')], {}),
        ([(b"connector-d", b"[]"), (b"connector-d", CONFIG[1])], {}),
    ],
)
def test_what_is_to_go(records: list[tuple[bytes | None, bytes | None]], found: dict[int, dict[str, object]]) -> None:
    """A newer record of the key is what lets compaction take one, be it as bad; without a key none is kept."""
    log = [Record("t", 0, offset, -1, *pair) for offset, pair in enumerate([CONFIG, *records])]
    bad = bad_records(fold_config_topic(log), log)
    assert {each.record.offset: {"first": each.first, "anew": each.anew} for each in bad} == found


TASK, ONE_TASK = (b"task-c-0", b'{"properties":{}}'), (b"commit-c", b'{"tasks":1}')


@pytest.mark.parametrize(
    ("records", "forgotten"),
    [
        ([CONFIG, TASK, ONE_TASK], []),
        ([CONFIG, TASK, ONE_TASK, CONFIG], ["c"]),
        ([CONFIG, TASK, ONE_TASK, CONFIG, TASK, ONE_TASK], []),
        ([CONFIG, COMMIT, CONFIG], []),
        ([CONFIG, TASK, ONE_TASK, (b"connector-c", None)], []),
    ],
)
def test_whose_tasks_compaction_makes_workers_forget(
    records: list[tuple[bytes, bytes | None]], forgotten: list[str]
) -> None:
    """A config that was written again as it was comes after its tasks, and nothing else of it is left."""
    log = [Record("t", 0, offset, -1, *pair) for offset, pair in enumerate(records)]
    assert forgotten_by_compaction(fold_config_topic(log), log) == forgotten
