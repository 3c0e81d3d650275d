"""`offsets import`, `lint`, the other formats of `export`, and `get --rest`, as typed, on topics in memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eosctl.core.offsets.names import partition_for
from eosctl.core.records import Headers, OutRecord
from eosctl.deadline import Clock
from eosctl.errors import UnauthorizedError
from tests.conftest import Invoke, Outcome
from tests.fakes.connectors import MemoryOffsets
from tests.fakes.offset_topics import IN_OWN, OffsetWorld

GLOBAL, OWN = "connect-offsets", "own"
A, B = b'["c",{"f":"a"}]', b'["c",{"f":"b"}]'


@pytest.fixture
def world() -> OffsetWorld:
    """Connector c, STOPPED, with one live and one deleted offset in the global topic, one in its own topic."""
    world = OffsetWorld()
    compacted = {"cleanup.policy": "compact"}
    world.topics.add_topic(GLOBAL, 5, compacted)
    world.topics.add_topic(OWN, 5, compacted)
    world.topics.put(GLOBAL, A, b'{"n":1}')
    world.topics.put(GLOBAL, B, b'{"n":1}')
    world.topics.put(GLOBAL, B, None)
    world.topics.put(OWN, A, b'{"n":7}')
    world.connect.add("c", IN_OWN, state="STOPPED")
    return world


Run = Callable[..., Outcome]


def listed(run: Run, *words: str) -> list[tuple[Any, ...]]:
    """What `list` says of the global store, without where it is."""
    rows = run("list", *words, "-o", "json").json()["data"]["rows"]
    return [(row["key"], row["effective"]["documented"], row["flags"]) for row in rows]


@pytest.mark.parametrize("form", [[], ["--all-records"]])
def test_an_export_imported_into_an_empty_topic_gives_the_same_list(
    run: Run, world: OffsetWorld, tmp_path: Path, form: list[str]
) -> None:
    path = str(tmp_path / "offsets.ndjson")
    before = run("list", "--offset-topic", GLOBAL, "--store", "global", "-o", "json").json()["data"]["rows"]
    exported = run("export", "--store", "global", *form, path, "-o", "json").json()["data"]["summary"]
    assert exported == {"records": 2 + len(form), "tombstones": 1, "records_read": 3}
    done = run("import", path, "--store", "copy", "--yes", "-o", "json").json()
    assert done["exit_code"] == 0
    assert done["data"]["creates"] == [{"topic": "copy", "partitions": 5, "replication_factor": 1}]
    assert world.topics.topics["copy"].given == {"cleanup.policy": "compact"}
    after = run("list", "--offset-topic", "copy", "--store", "global", "-o", "json").json()["data"]["rows"]
    for rows in (before, after):
        for row in rows:
            cell = row["stores"]["global"]
            row["stores"]["global"] = {"partition": cell["partition"], "value": cell["value"]}
    assert before == after
    assert [row["flags"] for row in after] == [[], ["deleted"]]


def test_an_import_shows_its_plan_keeps_a_backup_and_can_be_undone(
    run: Run, world: OffsetWorld, tmp_path: Path, golden: Callable[[str, str], None]
) -> None:
    path = tmp_path / "offsets.ndjson"
    path.write_text(run("export", "--store", "global").stdout)
    refused = run("import", str(path), "--store", OWN)
    assert (refused.exit_code, world.topics.writes) == (6, 0)
    golden("offsets-import-plan.txt", run("import", str(path), "--store", OWN, "--dry-run").stdout)
    done = run("import", str(path), "--store", "dedicated", "--connector", "c", "--yes", "-o", "json").json()
    assert done["exit_code"] == 0
    assert world.topics.newest(OWN) == {A: b'{"n":1}', B: None}
    assert [error["code"] for error in done["errors"]] == ["over_newer"]
    undone = run("restore", done["data"]["backup"], "--yes")
    assert undone.exit_code == 0
    assert world.topics.newest(OWN)[A] == b'{"n":7}'


def test_headers_survive_an_import_and_its_restore(run: Run, world: OffsetWorld, tmp_path: Path) -> None:
    """They were in the exported file, and nowhere after it was imported."""
    headers, path = (("origin", b"\x00\xff"), ("origin", None)), tmp_path / "offsets.ndjson"
    world.topics.write(
        [OutRecord(GLOBAL, A, b'{"n":3}', headers=headers), OutRecord(OWN, A, b'{"n":8}', headers=headers)]
    )
    path.write_text(run("export", "--store", "global").stdout)

    def newest(topic: str) -> tuple[bytes | None, Headers]:
        record = [each for each in world.topics.records(topic) if each.key == A][-1]
        return record.value, record.headers

    done = run("import", str(path), "--store", OWN, "--yes", "-o", "json").json()
    assert (done["exit_code"], newest(OWN)) == (0, (b'{"n":3}', headers))
    assert run("restore", done["data"]["backup"], "--yes").exit_code == 0
    assert newest(OWN) == (b'{"n":8}', headers)


def test_a_name_that_begins_with_a_comma_hides_no_other_offsets(run: Run, world: OffsetWorld, tmp_path: Path) -> None:
    """Beside one such key the export was empty, exit 0, and imports and merges took the process down."""
    world.topics.put(GLOBAL, odd := b'[",x",{"f":"a"}]', b'{"n":9}')
    path = tmp_path / "offsets.ndjson"
    path.write_text(run("export", "--store", "global", "--connector", "c", "--all-records").stdout)
    keys = [json.loads(line)["key"].encode() for line in path.read_text().splitlines()]
    assert sorted(keys) == [A, B, B]
    merged = run("merge", "--connector", "c", "--into", "global", "--dry-run", "-o", "json").json()
    assert [(row["connector"], row["key"]) for row in merged["data"]["rows"]] == [("c", A.decode()), ("c", B.decode())]
    path.write_text(run("export", "--store", "global").stdout)
    done = run("import", str(path), "--store", "copy", "--yes", "-o", "json").json()
    assert (done["exit_code"], world.topics.newest("copy")) == (0, {A: b'{"n":1}', B: None, odd: b'{"n":9}'})


def test_a_long_plan_is_shown_in_part_and_told_whole(run: Run, tmp_path: Path) -> None:
    """A plan of 200,000 rows used to run past on the terminal, all of it, before the question."""
    path = tmp_path / "offsets.ndjson"
    lines = (
        json.dumps({"topic": GLOBAL, "partition": 0, "key": json.dumps(["c", {"f": str(number)}]), "value": '{"n":1}'})
        for number in range(60)
    )
    path.write_text("\n".join(lines) + "\n")
    words = ("import", str(path), "--store", OWN)
    asked = run(*words)
    assert (asked.exit_code, asked.stderr.count('{"f":"')) == (6, 15)
    assert "... and 45 more rows; --dry-run shows more" in asked.stderr
    assert run(*words, "--dry-run").stdout.count('{"f":"') == 60
    done = run(*words, "--yes", "-o", "json")
    assert (len(done.json()["data"]["rows"]), done.stderr.count('{"f":"')) == (60, 15)


def test_import_reads_stdin(run: Run, world: OffsetWorld) -> None:
    line = json.dumps({"topic": "x", "partition": 0, "key": A.decode(), "value": '{"n":5}'})
    done = run("import", "-", "--store", OWN, "--yes", input=f"{line}\n")
    assert done.exit_code == 0
    assert world.topics.newest(OWN)[A] == b'{"n":5}'


def test_an_import_is_refused_like_every_write(run: Run, world: OffsetWorld) -> None:
    line = json.dumps({"topic": "x", "partition": 0, "key": A.decode(), "value": '{"n":5}'})
    world.connect.add("c", IN_OWN)
    running = run("import", "-", "--store", OWN, "--yes", input=line)
    assert (running.exit_code, "not stopped: c" in running.stderr) == (6, True)
    world.connect.add("c", IN_OWN, state="STOPPED")
    world.topics.open_transaction(OWN, partition_for(A, 5))
    world.topics.put(OWN, A, b"{}")
    hidden = run("import", "-", "--store", OWN, "--yes", input=line)
    assert (hidden.exit_code, "an open transaction hides" in hidden.stderr) == (6, True)
    assert world.topics.writes == 0


def test_an_import_waits_for_what_is_hidden_where_the_key_does_not_belong(run: Run, world: OffsetWorld) -> None:
    """It called its offset written already, while a newer one on another partition had not been committed yet."""
    wrong = (partition_for(A, 5) + 1) % 5
    world.topics.put(OWN, A, b'{"n":5}', partition=wrong)
    world.topics.put(OWN, A, b'{"n":6}')
    world.topics.open_transaction(OWN, wrong)
    world.topics.put(OWN, A, b'{"n":7}', partition=wrong)
    line = json.dumps({"topic": "x", "partition": 0, "key": A.decode(), "value": '{"n":6}'})
    hidden = run("import", "-", "--store", OWN, "--yes", input=line)
    assert (hidden.exit_code, f"partition {wrong}: an open transaction hides" in hidden.stderr) == (6, True)
    world.topics.close_transaction(OWN, wrong)
    assert run("import", "-", "--store", OWN, "--yes", input=line).exit_code == 0


def test_the_copy_that_a_file_deletes_stays_deleted(run: Run, world: OffsetWorld) -> None:
    """Its value came back where the other copy is that the file keeps, exit 0."""
    home = partition_for(A, 5)
    world.topics.put(GLOBAL, A, b'{"n":2}', partition=(home + 1) % 5)
    both = [(home, '{"n":1}'), ((home + 1) % 5, None)]
    lines = [json.dumps({"topic": "x", "partition": place, "key": A.decode(), "value": value}) for place, value in both]
    words = ("import", "-", "--store", GLOBAL, "--keep-partitions", "--yes")
    assert run(*words, input="\n".join(lines)).exit_code == 0
    records = world.topics.read(GLOBAL, newest_per_key=True).records
    assert {each.partition: each.value for each in records if each.key == A} == {home: b'{"n":1}', (home + 1) % 5: None}


@pytest.mark.parametrize(
    ("content", "words", "exit_code", "complaint"),
    [
        ("{}\n", [], 2, "line 1: not a record"),
        ("", [], 2, "holds no offsets"),
        ('{"offsets":[]}', ["--connector", "c"], 2, "holds no offsets of c"),
        ('{"offsets":[{"partition":{"f":"a"},"offset":{"n":1}}]}', [], 2, "does not name its connector"),
        (None, [], 2, "cannot read"),
    ],
)
def test_files_that_can_not_be_imported(
    run: Run, tmp_path: Path, content: str | None, words: list[str], exit_code: int, complaint: str
) -> None:
    path = tmp_path / "f"
    if content is not None:
        path.write_text(content)
    done = run("import", str(path), "--store", OWN, *words, "--yes")
    assert (done.exit_code, complaint in done.stderr) == (exit_code, True), done.stderr


def test_import_needs_a_topic_or_one_to_make_it_like(run: Run) -> None:
    line = json.dumps({"topic": "x", "partition": 0, "key": A.decode(), "value": "1"})
    done = run("import", "-", "--store", "new", "--offset-topic", "none", "--yes", input=line)
    assert (done.exit_code, "there is no topic new" in done.stderr) == (1, True)


def test_a_body_goes_out_and_in(run: Run, world: OffsetWorld) -> None:
    body = run("export", "--store", "global", "--connector", "c", "--format", "rest").stdout
    assert json.loads(body) == {"offsets": [{"partition": {"f": "a"}, "offset": {"n": 1}}]}
    assert run("import", "-", "--store", OWN, "--connector", "c", "--yes", input=body).exit_code == 0
    assert world.topics.newest(OWN) == {A: b'{"n":1}'}
    assert run("export", "--store", "global", "--format", "rest").exit_code == 2
    assert run("export", "--store", "global", "--connector", "c", "--format", "rest", "--all-records").exit_code == 2


def test_what_stdout_can_not_tell_is_said_on_stderr(run: Run, world: OffsetWorld) -> None:
    """`export` to stdout used to say nothing of what an open transaction hides."""
    world.topics.open_transaction(GLOBAL, 0)
    world.topics.put(GLOBAL, b'["c",null]', b"{}", partition=0)
    done = run("export", "--store", "global")
    assert "partition 0: what lies behind an open transaction is not in the file" in done.stderr
    world.topics.close_transaction(GLOBAL, 0)
    done = run("export", "--store", "global", "--connector", "c", "--format", "rest")
    assert "1 offset with a null source partition" in done.stderr


def test_an_export_waits_for_what_an_open_transaction_hides_for_a_moment(run: Run, world: OffsetWorld) -> None:
    """It left out what a running task was about to commit, which `list` a moment later showed."""
    world.topics.open_transaction(GLOBAL, 0)
    world.topics.put(GLOBAL, b'["c",null]', b"{}", partition=0)
    world.topics.after("bounds", lambda _call: world.topics.close_transaction(GLOBAL, 0))
    done = run("export", "--store", "global")
    assert (done.exit_code, done.stderr) == (0, "")
    assert b'["c",null]' in [str(json.loads(line)["key"]).encode() for line in done.stdout.splitlines()]


def test_get_asks_the_worker_too(run: Run, world: OffsetWorld, golden: Callable[[str, str], None]) -> None:
    world.topics.put(OWN, B, b'{"n":8}')
    world.topics.put(OWN, b'["c",{"f":"x"}]', b'{"n":9}')
    said = [({"f": "a"}, {"n": 7}), ({"f": "b"}, None), ({"f": "z"}, {"n": 1})]
    world.connect.offsets = MemoryOffsets({"c": [{"partition": of, "offset": offset} for of, offset in said]})
    done = run("get", "--connector", "c", "--rest")
    assert done.exit_code == 0
    assert "something else than the topics hold for 3 source partitions" in done.stderr
    golden("offsets-get-rest.txt", done.stdout)
    one = run("get", "--connector", "c", "--rest", "--partition", '{"f":"a"}', "-o", "json").json()["data"]
    assert [row["rest"] for row in one["rows"]] == [{"status": "same", "offset": {"n": 7}}]
    assert one["summary"]["rest_differing"] == 0


def test_what_a_worker_answers_may_be_nested_too_deep_to_show(run: Run, world: OffsetWorld) -> None:
    """`get --rest` ended in a RecursionError."""
    deep: list[Any] = []
    for _ in range(500):
        deep = [deep]
    world.connect.offsets = MemoryOffsets({"c": [{"partition": {"f": "a"}, "offset": {"n": deep}}]})
    done = run("get", "--connector", "c", "--rest", "--partition", '{"f":"a"}', "-o", "json").json()["data"]
    assert done["rows"][0]["rest"]["offset"] == '{"n":' + "[" * 501 + "]" * 501 + "}"


def test_lint_finds_nothing_wrong_with_a_good_topic(run: Run, world: OffsetWorld) -> None:
    for topic in world.topics.topics.values():
        topic.replication_factor = 3
    done = run("lint", "-o", "json").json()
    assert (done["exit_code"], done["data"]["topics"]) == (0, [GLOBAL, OWN])
    assert done["data"]["summary"]["codes"] == {"partition_count": 2}


def test_lint(run: Run, world: OffsetWorld, golden: Callable[[str, str], None]) -> None:
    away = (partition_for(A, 5) + 1) % 5
    world.topics.put(GLOBAL, A, b'{"n":2}', partition=away)
    world.topics.put(GLOBAL, b"junk", b"1")
    world.topics.put(GLOBAL, b'["c", {"f":"a"}]', b'{"n":3}')
    world.topics.put(GLOBAL, b'["d",{}]', b"nope")
    done = run("lint", "--store", "global")
    assert done.exit_code == 3
    golden("offsets-lint.txt", done.stdout)


def test_lint_of_one_connector_leaves_out_what_is_wrong_with_others(run: Run, world: OffsetWorld) -> None:
    """It had no --connector, as all others have."""
    world.connect.add("e", {"offsets.storage.topic": "later"}, state="STOPPED")
    world.topics.put(GLOBAL, b"junk", b"1")
    world.topics.put(GLOBAL, b'["d",{}]', b"nope")
    world.topics.put(GLOBAL, b'["c", {"f":"a"}]', b'{"n":3}')

    def found(*words: str) -> tuple[int, set[tuple[str, str]]]:
        done = run("lint", "-o", "json", *words).json()
        own = [row for row in done["data"]["rows"] if row["code"] not in ("partition_count", "single_replica")]
        return done["exit_code"], {(row["code"], row["subject"]) for row in own}

    of_c, of_d, of_e = ("double_spelling", "c"), ("value_not_json", "d"), ("topic_missing", "later")
    assert found("--connector", "c") == (3, {of_c})
    assert found("--connector", "d") == (3, {of_d})
    assert found("--connector", "c", "--connector", "e") == (3, {of_c, of_e})
    assert found()[1] > {of_c, of_d, of_e}, "and keys of no connector"
    assert found("--connector", "e") == (0, {of_e})


def test_lint_of_a_connector_that_nobody_knows(run: Run) -> None:
    """It must not say that nothing is wrong."""
    assert run("lint", "--connector", "nosuch").exit_code == 1
    assert run("lint", "--connector", "c", "--store", "global").exit_code == 2


@pytest.mark.parametrize("is_home_right", [False, True])
def test_the_repair_that_lint_gives_mends_the_topic(
    run: Run, world: OffsetWorld, tmp_path: Path, is_home_right: bool
) -> None:
    """Where the value at home was right the tombstone alone was written, and being younger hid it."""
    away = (partition_for(A, 5) + 1) % 5
    world.topics.put(GLOBAL, A, b'{"n":2}', partition=away)
    if is_home_right:
        world.topics.put(GLOBAL, A, b'{"n":2}')
    [found] = [row for row in run("lint", "-o", "json").json()["data"]["rows"] if row["severity"] == "error"]
    assert found["code"] == "several_partitions"
    path = tmp_path / "repair.ndjson"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in found["evidence"]["repair"]))
    assert run("import", str(path), "--store", GLOBAL, "--keep-partitions", "--yes").exit_code == 0
    assert {r.partition: r.value for r in world.topics.read(GLOBAL, newest_per_key=True).records if r.key == A} == {
        partition_for(A, 5): b'{"n":2}',
        away: None,
    }
    done = run("lint", "-o", "json").json()
    assert (done["exit_code"], done["data"]["summary"]["counts"]["error"]) == (0, 0)
    assert done["data"]["summary"]["codes"]["several_partitions"] == 1, "until compaction removes the tombstone"
    assert listed(run, "--store", "global", "--offset-topic", GLOBAL)[0][1] == {"n": 7}


def test_warnings_count_only_when_strict(run: Run) -> None:
    assert run("lint").exit_code == 0
    assert run("lint", "--strict").exit_code == 3


def test_lint_names_who_holds_a_transaction_open(run: Run, world: OffsetWorld) -> None:
    world.topics.put(GLOBAL, b'["d",{}]', b"{}", partition=2)
    producer_id = world.topics.state.open_transaction("connect-d-0", (GLOBAL, 2), epoch=3)
    world.time.sleep(100)
    done = run("lint", "--store", "global", "-o", "json").json()
    [found] = [row for row in done["data"]["rows"] if row["code"] == "open_transaction"]
    assert done["exit_code"] == 3
    assert found["evidence"]["transactional_id"] == "connect-d-0"
    assert 100_000 <= found["evidence"]["age_ms"] < 110_000
    [seen] = [error for error in run("list", "-o", "json").json()["errors"] if error["code"] == "open_transaction"]
    holder = f"producer {producer_id} (epoch 3), transactional id connect-d-0"
    assert f"connect-offsets-2: a transaction is held open by {holder}" in str(seen["message"])
    world.brokers.calls.fail_next("describe_producers", UnauthorizedError("DESCRIBE on TransactionalId is missing"))
    done = run("lint", "--store", "global", "-o", "json").json()
    assert [error["code"] for error in done["errors"]] == ["not_authorized"]
    assert {row["code"] for row in done["data"]["rows"]} >= {"open_transaction"}


def test_transactions_that_come_and_go_are_no_finding(world: OffsetWorld, invoke: Invoke) -> None:
    """Running tasks open and end transactions all the time; an LSO behind the end is then nothing special."""
    world.topics.open_transaction(GLOBAL, 2)
    world.topics.put(GLOBAL, b'["d",{}]', b"{}", partition=2)

    def sleep(_wanted_s: float) -> None:
        world.topics.close_transaction(GLOBAL, 2)
        world.topics.open_transaction(GLOBAL, 2)
        world.topics.put(GLOBAL, b'["d",{}]', b"{}", partition=2)

    done = invoke(*world.flags, "offsets", "lint", "-o", "json", doors=world.doors(), clock=Clock(sleep_s=sleep)).json()
    assert "open_transaction" not in done["data"]["summary"]["codes"]


def test_lint_of_topics_that_are_not_there(run: Run, world: OffsetWorld) -> None:
    assert run("lint", "--store", "nosuch").exit_code == 1
    world.connect.add("e", {"offsets.storage.topic": "later"}, state="STOPPED")
    done = run("lint", "--store", "dedicated", "-o", "json").json()
    assert (done["data"]["topics"], done["data"]["summary"]["codes"]["topic_missing"]) == ([OWN], 1)


def test_of_very_many_findings_a_hundred_are_shown(run: Run, world: OffsetWorld) -> None:
    for number in range(150):
        world.topics.put(GLOBAL, b"junk %d" % number, b"1")
    done = run("lint", "--store", "global", "-o", "json").json()["data"]
    assert (done["summary"]["codes"]["key_not_json"], done["summary"]["counts"]["error"]) == (150, 150)
    assert sum(row["code"] == "key_not_json" for row in done["rows"]) == 100
    assert "key_not_json: 100 of 150 are shown" in run("lint", "--store", "global").stdout


@pytest.mark.parametrize("command", ["merge", "import", "restore"])
def test_of_a_bulk_plan_a_hundred_rows_are_shown_and_everything_is_counted(
    run: Run, tmp_path: Path, command: str
) -> None:
    """A plan of many thousand keys was a document of as many rows, as text and as JSON."""
    path = tmp_path / "many.ndjson"
    lines = [{"topic": "x", "partition": 0, "key": f'["c",{{"n":{n}}}]', "value": '{"n":1}'} for n in range(150)]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    words: tuple[str, ...] = ("import", str(path), "--store", "global")
    if command != "import":
        backup = str(run(*words, "--yes", "-o", "json").json()["data"]["backup"])
        words = ("restore", backup) if command == "restore" else ("merge", "--connector", "c", "--into", "dedicated")
    told = run(*words, "--dry-run")
    plan = run(*words, "--dry-run", "-o", "json").json()["data"]
    done = run(*words, "--yes", "-o", "json").json()["data"]
    for shown in (plan, done):
        assert (len(shown["rows"]), sum(shown["summary"]["counts"].values())) == (100, shown["keys"])
        assert {row["action"] for row in shown["rows"]} <= {"write", "delete"}, "what changes comes first"
    assert (plan["keys"], done["summary"]["written"]) == (done["keys"], 150)
    assert plan["plan"] == done["plan"], "a digest of all rows, for the audit log"
    assert f"100 of {plan['keys']} keys are shown\n" in told.stdout
