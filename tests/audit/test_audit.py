"""`eosctl audit` as typed, on a cluster in memory: what each wrong does to the verdict, and what does nothing to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from eosctl.core.records import OutRecord
from eosctl.errors import DeadlineError, EosctlError, UnauthorizedError, UnreachableError
from eosctl.report import rfc3339
from tests.audit.log_scene import KEY, OTHER_OUT, OUT, OWN, START_MS, LogScene, run_on
from tests.conftest import Invoke, Outcome
from tests.fakes.faults import Call
from tests.fakes.world import OFFSETS

NOTHING = frozenset[str]()
EXIT_CODES = {"exactly_once": 0, "not_exactly_once": 3, "unproven": 7}


@dataclass(frozen=True)
class Case:
    """What happens in the log, and what is found: the codes of errors, warnings and infos."""

    name: str
    happens: Callable[[LogScene], object]
    verdict: str
    codes: frozenset[str] = NOTHING
    words: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name


def honest(scene: LogScene) -> None:
    task = scene.task()
    for _ in range(3):
        task.commit(b"a", b"b")


def a_task_that_moved(scene: LogScene) -> None:
    """Its worker was killed in a transaction, which its successor's start aborts."""
    before = scene.task()
    before.commit()
    before.write(OUT, b"k", b"lost")
    scene.state.expire("g-c-0")
    scene.task().commit()


def nothing_written(scene: LogScene) -> None:
    scene.task()


def plain_writes(scene: LogScene) -> None:
    scene.task().commit()
    scene.plain(OUT, b"k", b"v")


def null_offsets(scene: LogScene) -> None:
    """Connect writes a tombstone whose key has no source partition, in the same transaction."""
    task = scene.task()
    task.commit()
    task.commit(b"x", offset=None, key=b'["c",null]')


def no_offsets_at_all(scene: LogScene) -> None:
    task = scene.task()
    task.commit()
    task.commit(b"x", key=b"")
    task.commit()


def offsets_of_another_only(scene: LogScene) -> None:
    task = scene.task()
    task.commit()
    task.commit(b"x", key=b'["cc",{"task":"0"}]')


def a_disabled_worker(scene: LogScene) -> None:
    scene.plain(OUT, b"k", b"v")
    scene.plain(OFFSETS, KEY, b'{"n":1}')


def an_aborted_transaction(scene: LogScene) -> None:
    task = scene.task()
    task.commit()
    task.write(OUT, b"k", b"x")
    task.end(commit=False)


def an_open_transaction(scene: LogScene) -> None:
    task = scene.task()
    task.commit()
    task.write(OUT, b"k", b"x")


def a_young_open_transaction(scene: LogScene) -> None:
    an_open_transaction(scene)
    scene.time.now_s = (START_MS + 5_000) / 1000


def another_connector(scene: LogScene) -> None:
    scene.connect.add("d", {"topic": OUT})
    scene.task().commit()
    scene.task(0, "d").commit(key=b'["d",{}]')


def a_connector_that_is_gone(scene: LogScene) -> None:
    """Its records stay, and its id says whose they are."""
    scene.task().commit()
    scene.task(0, "gone").commit(key=b'["gone",{}]')


def an_application(scene: LogScene) -> None:
    scene.task().commit()
    application = scene.task()
    application.transactional_id = "my-application"
    application.start().commit(key=b"")


def forgotten_by_everybody(scene: LogScene) -> None:
    """A producer with offsets of nobody, whose id the coordinators do not know any more."""
    scene.task().commit()
    application = scene.task()
    application.transactional_id = "old"
    application.start().commit(key=b"")
    del scene.state.transactions["old"]


def forgotten_but_with_offsets(scene: LogScene) -> None:
    scene.task().commit()
    del scene.state.transactions["g-c-0"]


def a_zombie_that_a_fence_stopped(scene: LogScene) -> None:
    zombie = scene.task()
    zombie.commit()
    zombie.write(OUT, b"k", b"x")
    scene.state.expire("g-c-0")
    scene.task().commit()
    record = OutRecord(OUT, b"k", b"zombie")
    assert scene.state.write_in("g-c-0", (zombie.producer_id, zombie.epoch), record, 0) < 0


def a_zombie_that_nobody_stopped(scene: LogScene) -> None:
    """Brokers refuse its epoch: no log has this unless one of them is broken."""
    zombie = scene.task()
    zombie.commit()
    successor = scene.task()
    successor.commit()
    zombie.commit(b"again")


def a_marker_that_is_missing(scene: LogScene) -> None:
    task = scene.task()
    task.commit()
    task.write(OUT, b"k", b"x", partition=1)
    task.write(OUT, b"k", b"x", partition=0)
    task.write(OFFSETS, KEY, b'{"n":2}')
    scene.end(task, commit=True, but=(OUT, 1))


def offsets_in_the_former_topic(scene: LogScene) -> None:
    """The connector was moved to a topic of its own in the window."""
    scene.topics.add_topic(OWN, 1, {"cleanup.policy": "delete"})
    scene.task().commit()
    scene.connect.connectors["c"].config["offsets.storage.topic"] = OWN
    scene.offsets_topic = OWN
    task = scene.task()
    task.commit()
    scene.plain(OFFSETS, KEY, b'{"n":1}')  # the copy that Connect keeps in the global topic


def offsets_back_in_the_global_topic(scene: LogScene) -> None:
    """The connector had a topic of its own for a while; its worker kept copies in the global one."""
    scene.task().commit()
    scene.topics.add_topic(OWN, 1, {"cleanup.policy": "delete"})
    scene.offsets_topic = OWN
    task = scene.task()
    task.commit()
    scene.plain(OFFSETS, KEY, b'{"n":1}')
    task.commit()
    scene.offsets_topic = OFFSETS
    scene.task().commit()


ABORTED, OPEN = frozenset({"transaction_aborted"}), frozenset({"transaction_open"})
CASES = [
    Case(
        "honest",
        honest,
        "exactly_once",
        words=("6 records of its tasks were committed, each in a transaction", "3 transactions in all"),
    ),
    Case("a task that moved", a_task_that_moved, "exactly_once", ABORTED),
    Case(
        "nothing written",
        nothing_written,
        "unproven",
        words=("Not proven: no transaction of the connector was committed",),
    ),
    Case("plain writes", plain_writes, "not_exactly_once", frozenset({"batch_not_transactional"})),
    Case("null offsets", null_offsets, "not_exactly_once", frozenset({"transaction_without_offsets"})),
    Case("no offsets at all", no_offsets_at_all, "not_exactly_once", frozenset({"transaction_without_offsets"})),
    Case("offsets of another", offsets_of_another_only, "not_exactly_once", frozenset({"transaction_without_offsets"})),
    Case(
        "disabled worker",
        a_disabled_worker,
        "not_exactly_once",
        frozenset({"batch_not_transactional", "offsets_without_transaction"}),
    ),
    Case("aborted", an_aborted_transaction, "exactly_once", ABORTED, words=("info  transaction_aborted",)),
    Case("open for long", an_open_transaction, "exactly_once", OPEN, words=("warning  transaction_open",)),
    Case("open", a_young_open_transaction, "exactly_once", OPEN, words=("info  transaction_open",)),
    Case(
        "another connector",
        another_connector,
        "exactly_once",
        frozenset({"foreign_producer"}),
        words=("g-d-0 (connector d)",),
    ),
    Case(
        "a connector that is gone",
        a_connector_that_is_gone,
        "exactly_once",
        frozenset({"foreign_producer"}),
        words=("g-gone-0 (connector gone, which is gone)",),
    ),
    Case(
        "an application",
        an_application,
        "unproven",
        frozenset({"foreign_producer"}),
        words=("my-application wrote to the topics, and it is not known that this is not the connector's",),
    ),
    Case("forgotten by everybody", forgotten_by_everybody, "unproven", frozenset({"producer_unknown"})),
    Case("forgotten, with offsets", forgotten_but_with_offsets, "exactly_once"),
    Case("zombie, stopped", a_zombie_that_a_fence_stopped, "exactly_once", ABORTED),
    Case(
        "zombie, not stopped",
        a_zombie_that_nobody_stopped,
        "not_exactly_once",
        frozenset({"epoch_went_back", "zombie_wrote"}),
    ),
    Case("marker missing", a_marker_that_is_missing, "not_exactly_once", frozenset({"commit_markers_missing"})),
    Case("moved offsets", offsets_in_the_former_topic, "exactly_once", frozenset({"offsets_elsewhere"})),
]


def codes(done: Outcome) -> set[str]:
    return {row["code"] for row in done.json()["data"]["rows"]}


def connector(done: Outcome) -> Any:
    (found,) = done.json()["data"]["connectors"]
    return found


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_verdict_and_what_it_is_made_of(invoke: Invoke, case: Case) -> None:
    """Whether last night was exactly-once could be said of no connector; each of these looks alike to a consumer."""
    scene = LogScene()
    case.happens(scene)
    run = run_on(scene, invoke)
    done, text = run("-o", "json"), run()
    assert (codes(done), connector(done)["verdict"], done.exit_code) == (
        set(case.codes),
        case.verdict,
        EXIT_CODES[case.verdict],
    )
    assert all(words in text.stdout for words in case.words), text.stdout
    assert "None" not in text.stdout


@pytest.mark.parametrize("bumps", [True, False])
@pytest.mark.parametrize("missing", [0, 1, 3])
def test_transactions_that_share_an_epoch_are_matched_with_their_offsets(
    invoke: Invoke, bumps: bool, missing: int
) -> None:
    """Before transaction version 2 nothing but time tells the transactions of one producer apart."""
    scene = LogScene(bumps=bumps)
    one, other = scene.task(0), scene.task(1)
    for number in range(6):
        one.commit(b"a", b"b", key=b"" if number < missing else KEY)
        other.commit(b"c")
    done = run_on(scene, invoke)("-o", "json")
    found = [row["count"] for row in done.json()["data"]["rows"]]
    assert found == ([missing] if missing else [])
    assert connector(done)["transactions"]["committed"] == 12


def test_every_wrong_has_its_place(invoke: Invoke) -> None:
    scene = LogScene()
    null_offsets(scene)
    (row,) = run_on(scene, invoke)("-o", "json").json()["data"]["rows"]
    assert {name: row[name] for name in ("topic", "partition", "first_offset", "last_offset", "count")} == {
        "topic": OUT, "partition": 0, "first_offset": 2, "last_offset": 2, "count": 1,
    }  # fmt: skip
    assert (row["transactional_id"], row["producer_epoch"], row["at"]) == ("g-c-0", 1, "2023-11-14T22:13:23.000Z")
    assert row["evidence"] == {"records": 1}


def test_the_text_has_the_verdict_first(invoke: Invoke, golden: Callable[[str, str], None]) -> None:
    scene = LogScene()
    null_offsets(scene)
    another_connector(scene)
    a_task_that_moved(scene)
    golden("audit.txt", run_on(scene, invoke)().stdout)


def test_the_document(invoke: Invoke) -> None:
    scene = LogScene()
    honest(scene)
    document = run_on(scene, invoke)("-o", "json").json()
    assert (document["kind"], document["status"], document["data"]["rows"]) == ("audit", "ok", [])
    assert document["target"] == {"kafka_cluster_id": "fake-cluster-id", "group_id": "g"}
    found = document["data"]["connectors"][0]
    (producer,) = found.pop("producers")
    assert producer["transactional_id"] == "g-c-0"
    assert (producer["epochs"], producer["records"], producer["owner"]) == ([0, 2], 6, "task")
    assert producer["identified_by"] == "coordinator"
    assert found["transactions"] == {"committed": 3, "aborted": 0, "open": 0}
    assert (found["records"], found["topics"], found["offsets_topics"]) == (6, [OUT], [OFFSETS])
    assert found["bytes"] == 6 * 72
    assert found["window"] == {
        "since_ms": None, "until_ms": None, "proven_since_ms": None, "proven_until_ms": START_MS + 8_000, "unseen": [],
    }  # fmt: skip


def test_a_transaction_that_began_before_the_window_is_no_finding_and_no_proof(invoke: Invoke) -> None:
    """The first transaction in each partition was never judged: all of them without offsets were exactly_once."""
    scene = LogScene()
    task = scene.task()
    task.write(OUT, b"k", b"first")
    task.write(OUT, b"k", b"second")
    task.end()
    task.commit()
    run = run_on(scene, invoke)
    assert codes(run("-o", "json")) == {"transaction_without_offsets"}
    assert codes(run("-o", "json", "--since", "1")) == set()
    done = run("--since", "1")
    assert (done.exit_code, "1 transaction without offsets may have begun before what was read" in done.stdout) == (
        7,
        True,
    )


def test_what_a_window_cuts_off_is_not_open(invoke: Invoke) -> None:
    scene = LogScene()
    task = scene.task()
    task.commit()
    task.commit(b"a", b"b")
    assert codes(run_on(scene, invoke)("-o", "json", "--until", "3")) == set()


def test_a_window_of_time(invoke: Invoke) -> None:
    """Only what is wrong within the window counts against it."""
    scene = LogScene()
    task = scene.task()
    task.commit(key=b"")
    for _ in range(4):
        task.commit()
    run = run_on(scene, invoke)
    assert run().exit_code == 3
    after = run("--since", "2023-11-14T22:13:25Z", "-o", "json")
    assert (codes(after), after.exit_code, connector(after)["records"]) == (set(), 0, 2)
    none = run("--since", "1m", "-o", "json")
    assert (connector(none)["verdict"], none.exit_code) == ("unproven", 7)
    assert run("--since", "yesterday").exit_code == 2
    assert run("--since", "1m", "--until", "2m").exit_code == 2


YEAR_2100_MS = 4_102_444_800_000


@pytest.mark.parametrize("until", ["2023-11-14T22:13:32Z", "2023-11-15T00:00:00Z"])
def test_a_record_of_the_future_does_not_end_the_window(invoke: Invoke, until: str) -> None:
    """All behind the first record that is as young as --until was left out: what was wrong there, nobody said."""
    scene = LogScene()
    task = scene.task()
    task.commit()
    for number in range(4):
        task.commit(key=b"" if number == 2 else KEY)
    log = scene.state.log(OUT, 0)
    log.batches[2] = log.batches[2]._replace(first_timestamp_ms=YEAR_2100_MS, max_timestamp_ms=YEAR_2100_MS)
    done = run_on(scene, invoke)("-o", "json", "--until", until)
    assert (codes(done), done.exit_code) == ({"transaction_without_offsets"}, 3)
    newest_marker_ms = max(each.max_timestamp_ms for each in log.batches if each.is_control)
    window = connector(done)["window"]
    assert window["proven_until_ms"] <= newest_marker_ms, "a marker has the broker's time"
    assert window["unseen"] == []


def test_what_is_written_without_a_transaction_behind_a_record_of_the_future_is_seen(invoke: Invoke) -> None:
    scene = LogScene()
    task = scene.task()
    task.commit()
    task.commit()
    scene.plain(OUT, b"k", b"v")
    log = scene.state.log(OUT, 0)
    log.batches[2] = log.batches[2]._replace(first_timestamp_ms=YEAR_2100_MS, max_timestamp_ms=YEAR_2100_MS)
    log.batches[3] = log.batches[3]._replace(max_timestamp_ms=log.batches[4].max_timestamp_ms)
    done = run_on(scene, invoke)("-o", "json", "--until", "2023-11-15T00:00:00Z")
    assert (codes(done), done.exit_code) == ({"batch_not_transactional"}, 3)


def test_what_ended_after_the_window_is_not_in_it(invoke: Invoke) -> None:
    scene = LogScene()
    task = scene.task()
    task.commit()
    task.commit(key=b"")
    log = scene.state.log(OUT, 0)
    until = rfc3339(log.batches[2].max_timestamp_ms)
    assert until is not None
    done = run_on(scene, invoke)("-o", "json", "--until", until)
    assert (codes(done), done.exit_code, connector(done)["records"]) == (set(), 0, 1)


def test_what_was_deleted_narrows_the_proven_window(invoke: Invoke) -> None:
    scene = LogScene()
    honest(scene)
    scene.state.log(OUT, 0).delete_before(3)
    window = connector(run_on(scene, invoke)("-o", "json"))["window"]
    assert window["proven_since_ms"] == START_MS + 4_000
    assert window["unseen"] == [f"{OUT}-0, offsets 0 to 2: 3 offsets removed by retention or DeleteRecords"]


def test_a_compacted_output_topic_is_judged_by_what_is_left(invoke: Invoke) -> None:
    scene = LogScene()
    honest(scene)
    scene.state.log(OUT, 0).compact()
    done = run_on(scene, invoke)("-o", "json")
    assert (codes(done), done.exit_code) == (set(), 0)
    assert "removed by compaction" in connector(done)["window"]["unseen"][0]
    assert connector(done)["window"]["proven_since_ms"] is not None


def test_offsets_that_were_compacted_away_accuse_nobody(invoke: Invoke) -> None:
    """The offsets topic is compacted: of all but the newest offset of a source partition, the record is gone."""
    scene = LogScene()
    honest(scene)
    scene.state.log(OFFSETS, 0).compact()
    done = run_on(scene, invoke)("-o", "json")
    assert (codes(done), connector(done)["verdict"]) == (set(), "unproven")
    assert "from a time of which the offsets topic has lost records" in connector(done)["why"]


def test_several_topics_and_one_that_is_named(invoke: Invoke) -> None:
    scene = LogScene()
    scene.task().commit()
    scene.plain(OTHER_OUT, b"k", b"v")
    scene.connect.connectors["c"].topics.add(OTHER_OUT)
    run = run_on(scene, invoke)
    assert run().exit_code == 3
    assert run("--topic", OUT).exit_code == 0
    assert connector(run("-o", "json"))["topics"] == [OUT, OTHER_OUT]


def test_offsets_that_are_where_nobody_looks(invoke: Invoke) -> None:
    """After a switch to the global topic, the former offsets are in a topic that no config names any more."""
    scene = LogScene(offsets_topic=OWN)
    scene.topics.add_topic(OWN, 1, {"cleanup.policy": "delete"})
    scene.task().commit()
    run = run_on(scene, invoke)
    assert codes(run("-o", "json")) == {"transaction_without_offsets"}
    assert codes(run("-o", "json", "--offsets-topic", OWN)) == {"offsets_elsewhere"}


def test_the_copies_of_a_worker_accuse_nobody(invoke: Invoke) -> None:
    """After a switch there and back, the copies that Connect had kept in the global topic were errors."""
    scene = LogScene()
    offsets_back_in_the_global_topic(scene)
    done = run_on(scene, invoke)("-o", "json", "--offsets-topic", OWN)
    assert (codes(done), done.exit_code) == ({"offsets_elsewhere"}, 0)
    task = scene.task()
    for _ in range(15):  # each is two seconds later
        task.commit()
    scene.plain(OFFSETS, KEY, b'{"n":1}')
    again = run_on(scene, invoke)("-o", "json", "--offsets-topic", OWN)
    assert (codes(again), again.exit_code) == ({"offsets_elsewhere", "offsets_without_transaction"}, 3)


def test_what_a_disabled_worker_wrote_before_the_window_accuses_nobody(invoke: Invoke) -> None:
    """An audit of the time since an upgrade said not_exactly_once for what was written before it."""
    scene = LogScene()
    a_disabled_worker(scene)
    task = scene.task()
    for _ in range(4):
        task.commit()
    run = run_on(scene, invoke)
    assert "offsets_without_transaction" in codes(run("-o", "json"))
    since = run("-o", "json", "--since", "2023-11-14T22:13:25Z")
    assert (codes(since), since.exit_code) == (set(), 0)


def numbered(scene: LogScene, *numbers: int) -> None:
    task = scene.task()
    for number in numbers:
        task.commit(b'{"id":%d,"name":"n"}' % number)


def test_a_value_that_comes_twice_is_a_duplicate(invoke: Invoke) -> None:
    """Both came in good order, with their offsets: only the records show that the source was read twice."""
    scene = LogScene()
    numbered(scene, 1, 2, 2, 3)
    run = run_on(scene, invoke)
    assert run().exit_code == 0
    done = run("--unique", "id", "-o", "json")
    (row,) = done.json()["data"]["rows"]
    assert (row["code"], row["count"], row["first_offset"], done.exit_code) == ("duplicate", 1, 4, 3)
    assert row["message"] == "out-0, offset 4: 1 with a value that came before, the first 2"


def test_a_number_that_is_missing_is_a_gap(invoke: Invoke) -> None:
    scene = LogScene()
    numbered(scene, 1, 2, 5)
    done = run_on(scene, invoke)("--sequence", "id", "-o", "json")
    (row,) = done.json()["data"]["rows"]
    assert (row["code"], row["count"], row["message"]) == ("gap", 2, "out-0, offset 4: 2 missing before it, 3 to 4")


def test_aborted_records_are_no_duplicates(invoke: Invoke) -> None:
    scene = LogScene()
    numbered(scene, 1, 2)
    task = scene.task()
    task.write(OUT, b"k", b'{"id":3}')
    task.end(commit=False)
    numbered(scene, 3)
    done = run_on(scene, invoke)("--unique", "id", "--sequence", "id", "-o", "json")
    assert (codes(done), done.exit_code) == ({"transaction_aborted"}, 0)


@pytest.mark.parametrize("words", [("--unique", "nothing"), ("--sequence", "nothing")])
def test_records_without_the_field_leave_it_unproven(invoke: Invoke, words: tuple[str, str]) -> None:
    """A typo in the field's name was exactly_once: no value came twice, as none was read."""
    scene = LogScene()
    numbered(scene, 1, 2)
    done = run_on(scene, invoke)("-o", "json", *words)
    assert (connector(done)["verdict"], done.exit_code) == ("unproven", 7)
    assert connector(done)["why"] == "Not proven: 2 of 2 records have no such field."
    assert [each["message"] for each in done.json()["errors"]] == ["2 of 2 records have no such field"]


def test_values_that_are_no_numbers_leave_it_unproven(invoke: Invoke) -> None:
    scene = LogScene()
    scene.task().commit(b"one", b"two")
    done = run_on(scene, invoke)("-o", "json", "--sequence", "value")
    assert (connector(done)["verdict"], done.exit_code) == ("unproven", 7)
    assert "2 records have no number at the end of the field" in connector(done)["why"]


def test_records_behind_an_open_transaction_leave_it_unproven(invoke: Invoke) -> None:
    """Consumers don't see them yet, so nobody knows their values; a warning was all that said so."""
    scene = LogScene()
    numbered(scene, 1, 2)
    scene.task(1).write(OUT, b"k", b'{"id": 9}')
    numbered(scene, 3, 3)
    run = run_on(scene, invoke)
    assert run().exit_code == 0
    done = run("-o", "json", "--unique", "id")
    assert (connector(done)["verdict"], done.exit_code) == ("unproven", 7)
    assert f"{OUT}-0 was read to offset 4, where an open transaction begins" in connector(done)["why"]


def test_a_topic_that_was_deleted_leaves_it_unproven(invoke: Invoke) -> None:
    """The connector wrote to it, and what, nobody can look up: it was exactly_once, with a line below `not seen`."""
    scene = LogScene()
    honest(scene)
    scene.connect.connectors["c"].topics.add("deleted")
    done = run_on(scene, invoke)("-o", "json")
    assert (connector(done)["verdict"], done.exit_code) == ("unproven", 7)
    assert connector(done)["why"] == "Not proven: topic deleted does not exist any more."
    assert connector(done)["window"]["unseen"] == ["topic deleted does not exist any more"]


def test_the_field_of_a_known_source_need_not_be_named(invoke: Invoke) -> None:
    scene = LogScene()
    scene.task().commit(b"line", b"line")
    run, config = run_on(scene, invoke), scene.connect.connectors["c"].config
    assert run("--unique", "auto").exit_code == 3, "lines of a file"
    config |= {"connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector", "incrementing.column.name": "id"}
    assert "have no such field" in run("--unique", "auto").stderr
    config["connector.class"] = "my.OwnSource"
    assert (run("--unique", "auto").exit_code, run("--unique", "header").exit_code) == (2, 2)


def test_names_that_are_none(invoke: Invoke) -> None:
    scene = LogScene()
    honest(scene)
    run = run_on(scene, invoke)
    for words in (("--connector", "nobody"), ("--topic", "nowhere"), ("--offsets-topic", "nowhere")):
        done = run(*words)
        assert (done.exit_code, done.stdout) == (1, ""), words


def test_a_sink_is_refused(invoke: Invoke) -> None:
    scene = LogScene()
    scene.connect.add("s", {"connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector", "topics": OUT})
    assert run_on(scene, invoke)("--connector", "s").exit_code == 6


def test_without_the_right_to_read(invoke: Invoke) -> None:
    scene = LogScene()
    honest(scene)
    scene.batches.fail_next("plan", UnauthorizedError(f"not allowed to DESCRIBE topic {OUT}"))
    assert run_on(scene, invoke)().exit_code == 5


def test_without_the_right_to_list_ids(invoke: Invoke) -> None:
    """Whose the producers are is known by the offsets that they committed; that coordinators say nothing is said."""
    scene = LogScene()
    honest(scene)
    scene.brokers.calls.fail_always("list_transactions", UnauthorizedError("not allowed"))
    done = run_on(scene, invoke)("-o", "json")
    assert connector(done)["producers"][0]["identified_by"] == "offsets_record"
    assert done.exit_code == 0


def test_ctrl_c_reports_what_was_read(invoke: Invoke) -> None:
    scene = LogScene()
    honest(scene)
    plain_writes(scene)
    scene.batches.fail_next("batch", KeyboardInterrupt(), skip=12)
    done = run_on(scene, invoke)("-o", "json")
    assert (done.exit_code, done.json()["errors"][-1]["code"]) == (130, "interrupted")
    assert (connector(done)["verdict"], connector(done)["why"]) == ("unproven", "Not proven: the reading ended early.")
    assert connector(done)["records"] > 0


def test_the_end_of_the_time_reports_what_was_read(invoke: Invoke) -> None:
    scene = LogScene()
    honest(scene)
    scene.batches.fail_next("batch", DeadlineError("timed out after 60 s while reading"), skip=12)
    done = run_on(scene, invoke)("-o", "json")
    assert (done.exit_code, done.json()["errors"][-1]["code"]) == (4, "timed_out")
    assert connector(done)["verdict"] == "unproven"


def test_a_partition_without_a_leader_leaves_it_unproven(invoke: Invoke) -> None:
    scene = LogScene()
    honest(scene)
    scene.state.leaderless.add((OUT, 1))
    done = run_on(scene, invoke)("-o", "json")
    assert (done.exit_code, connector(done)["verdict"]) == (7, "unproven")
    assert "has no leader" in connector(done)["why"]


def test_brokers_of_its_own_that_cannot_be_reached_are_refused(invoke: Invoke) -> None:
    scene = LogScene(config={
        "producer.override.bootstrap.servers": "elsewhere:9092",
        "producer.override.sasl.jaas.config": "${file:/secrets:jaas}",
    })  # fmt: skip
    honest(scene)
    done = run_on(scene, invoke)()
    assert (done.exit_code, "only its worker can resolve" in done.stderr) == (6, True)


def test_an_audit_that_takes_longer_than_the_timeout_is_told_to_its_end(invoke: Invoke) -> None:
    """The timeout is for what gives no answer: after a minute of good reading nothing at all was printed."""
    scene = LogScene()
    numbered(scene, 1, 2, 3)
    scene.batches.before("batch", lambda _call: scene.time.pass_until(scene.time.now_s + 20.0))
    done = run_on(scene, invoke)("-o", "json", "--unique", "id", "--timeout", "30")
    assert (connector(done)["verdict"], done.exit_code, done.json()["errors"]) == ("exactly_once", 0, [])
    assert connector(done)["producers"][0]["identified_by"] == "coordinator"
    assert done.json()["target"]["kafka_cluster_id"] == "fake-cluster-id"


@pytest.mark.parametrize(
    ("error", "exit_code", "why"),
    [
        (DeadlineError("timed out after 60 s while reading"), 4, "the reading ended early"),
        (UnreachableError("nobody answers"), 7, "the records were not read: nobody answers"),
    ],
)
def test_records_that_can_not_be_read_do_not_lose_the_rest(
    invoke: Invoke, error: EosctlError, exit_code: int, why: str
) -> None:
    """All that the batches had shown until then was lost."""
    scene = LogScene()
    numbered(scene, 1, 2)

    def refuse(call: Call) -> None:
        if call.what[0] == OUT:
            raise error

    scene.topics.before("read", refuse)
    done = run_on(scene, invoke)("-o", "json", "--unique", "id")
    assert (connector(done)["verdict"], connector(done)["records"], done.exit_code) == ("unproven", 2, exit_code)
    assert connector(done)["why"] == f"Not proven: {why}."
