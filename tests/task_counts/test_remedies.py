"""What heals a task-count record that is wrong, ill written, or breaks workers."""

from __future__ import annotations

from typing import Any

import pytest

from eosctl.core.configs.fold import fold_config_topic
from eosctl.core.records import Record
from eosctl.task_counts.rules import AliveTask, Case, cases, find_problems
from tests.task_counts.connectors import CONFIG, OPEN, known, rows, state


@pytest.mark.parametrize(
    ("changes", "alive", "count", "more"),
    [
        ({"task_count_record": 1, "task_count": 3}, None, 3, ""),
        ({"task_count_record": 1, "task_count": 3}, (known(0), known(4, OPEN)), 5, ""),
        ({"task_count_record": 1, "task_count": None}, (known(1, OPEN),), 2, ""),
        ({"task_count_record": 10_001}, (), 2, ", `eosctl task-counts write --no-fence --count 2 --connector c`"),
        ({"task_count_record": 10_001, "task_count": None}, (), 0,
         ", `eosctl task-counts write --no-fence --count 0 --connector c`"),
    ],
)  # fmt: skip
def test_what_heals_a_wrong_count(
    changes: dict[str, Any], alive: tuple[AliveTask, ...] | None, count: int, more: str
) -> None:
    """As many ids are fenced as the newest task set has, or as are known to be alive."""
    [finding] = find_problems(Case(state(**changes), "g", alive=alive))
    commands = f"`eosctl connectors stop c`, `eosctl fence --tasks {count} --connector c`{more}, "
    assert finding.fix.endswith(f"{commands}`eosctl connectors resume c`.")


@pytest.mark.parametrize(
    ("key", "value", "code", "severity"),
    [
        (b"tasks-fencing-c", b'{"task-count":"2"}', "wrong_type", "error"),
        (b"tasks-fencing-c", b'{"tasks":2}', "kip_text_field", "error"),
        (b"tasks-fencing-c", b"{", "unparsable", "error"),
        (b"tasks-fencing-c", None, "tombstoned", "warning"),
        (b"task-count-c", b'{"tasks":2}', "kip_text_key", "warning"),
    ],
)
def test_ill_written_records_are_findings_of_their_connector(
    key: bytes, value: bytes | None, code: str, severity: str
) -> None:
    row = rows((b"connector-c", CONFIG), (key, value))["c"]
    assert [(f.code, f.severity) for f in row.findings] == [(code, severity)]
    assert "offset 1" in row.findings[0].message


WRITTEN_ANEW = "the leader writes the true count (only with exactly-once)."


@pytest.mark.parametrize(
    ("records", "fix"),
    [
        ([(b"tasks-fencing-c", b"{")], f"{{again}}: {WRITTEN_ANEW}"),
        ([(b"tasks-fencing-c", None)],
         "Running workers keep the old count, restarted ones forget it after compaction. "
         f"{{again}}: {WRITTEN_ANEW}"),
        ([(b"task-count-c", b'{"tasks":2}')],
         "Delete it; a record that workers read has the key tasks-fencing-<connector>."),
        ([(b"tasks-fencing-c", b"{"), (b"tasks-fencing-c", b'{"task-count":3}')],
         "Nothing: workers take the newer record. `eosctl task-counts clean` takes this one out of the topic."),
    ],
)  # fmt: skip
def test_what_heals_an_ill_written_record(records: list[tuple[bytes, bytes | None]], fix: str) -> None:
    [finding] = rows((b"connector-c", CONFIG), *records)["c"].findings
    again = "`eosctl connectors stop c` (Kafka 3.5 or newer), then `eosctl connectors resume c`"
    assert finding.fix == fix.format(again=again)


GOOD, BAD = (b"tasks-fencing-c", b'{"task-count":3}'), (b"tasks-fencing-c", b'{"tasks":3}')


def the_fix(*records: tuple[bytes, bytes]) -> str:
    topic = [(b"connector-c", CONFIG), *records]
    folded = fold_config_topic(Record("t", 0, at, -1, key, value) for at, (key, value) in enumerate(topic))
    [case] = cases(folded, "g")
    [finding] = [each for each in find_problems(case) if each.code in ("kip_text_field", "wrong_type")]
    assert finding.severity == "error"
    assert "each worker that is started before compaction has removed the record" in finding.message
    return finding.fix


CLEAN = "`eosctl task-counts clean` has it compacted away, and watches."
ANEW = "`eosctl connectors stop c` (Kafka 3.5 or newer), then `eosctl connectors resume c` "
BAD_COMMIT, COMMIT = (b"commit-c", b'{"tasks":"1"}'), (b"commit-c", b'{"tasks":0}')


@pytest.mark.parametrize(
    ("records", "first"),
    [
        ((BAD, GOOD), ""),
        ((GOOD, BAD), ""),
        ((BAD,), f"{ANEW}(the leader writes it anew; only with exactly-once), then "),
        ((GOOD, COMMIT, BAD), f"{ANEW}(the leader writes it anew; only with exactly-once), then "),
        ((GOOD, BAD, COMMIT), f"{ANEW}(the leader writes it anew; only with exactly-once), then "),
        ((BAD_COMMIT,), f"{ANEW}(it writes its tasks anew), then "),
        ((BAD_COMMIT, COMMIT), ""),
    ],
)
def test_a_record_that_breaks_workers_is_an_error_until_it_is_compacted_away(
    records: tuple[tuple[bytes, bytes], ...], first: str
) -> None:
    """It was a warning with the advice to overwrite it: a worker that starts reads both records in one batch."""
    assert the_fix(*records) == f"Restart no worker until it is gone: {first}{CLEAN}"


def test_a_record_of_a_sink_breaks_workers_as_well() -> None:
    row = rows((b"connector-c", b'{"properties":{"connector.class":"FileStreamSink"}}'), BAD)["c"]
    assert [(f.code, f.severity) for f in row.findings] == [("kip_text_field", "error")]
