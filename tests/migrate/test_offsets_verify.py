"""`eosctl offsets verify BACKUP`, and what becomes of keys that Connect ignores; on topics in memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from eosctl.errors import EosctlError
from eosctl.migrate.rows import StoredPlace
from tests.audit.test_page import Page
from tests.conftest import Outcome
from tests.fakes.offset_topics import IN_OWN, OffsetWorld

GLOBAL, OWN = "connect-offsets", "own"
A, B = b'["c",{"f":"a"}]', b'["c",{"f":"b"}]'
ODD = (b"junk", b"", b"\xff\xfe", b"{}", b'["c"]', b"[1,{}]", b'["c",1]')
Run = Callable[..., Outcome]


@pytest.fixture
def world() -> OffsetWorld:
    world = OffsetWorld()
    world.topics.add_topic(GLOBAL, 5)
    world.topics.add_topic(OWN, 5)
    world.topics.put(GLOBAL, A, b'{"n":1}')
    world.topics.put(GLOBAL, B, b'{"n":2}')
    world.topics.put(OWN, B, b'{"n":7}')
    world.connect.add("c", IN_OWN, state="STOPPED")
    return world


@pytest.fixture
def backup(run: Run) -> str:
    """Of a merge that wrote one key where there was none, and one over another."""
    words = ("merge", "--connector", "c", "--into", "dedicated", "--prefer", "global", "--yes", "-o", "json")
    return str(run(*words).json()["data"]["backup"])


def test_a_write_is_verified_against_its_backup_and_a_restore_against_what_was_before(run: Run, backup: str) -> None:
    done = run("verify", backup, "-o", "json").json()
    assert (done["kind"], done["exit_code"], done["data"]["rows"]) == ("offsets-verify", 0, [])
    assert done["data"]["summary"] == {"target_compared": 2, "target_differing": 0, "target_hidden": 0}
    assert run("verify", backup, "--before").exit_code == 3
    assert run("restore", backup, "--yes").exit_code == 0
    assert run("verify", backup, "--before").exit_code == 0
    after = run("verify", backup, "-o", "json").json()
    assert (after["exit_code"], [row["status"] for row in after["data"]["rows"]]) == (3, ["deleted", "differs"])


def test_a_value_that_was_to_be_written_once_more_is_told_from_the_one_before(
    run: Run, world: OffsetWorld, tmp_path: Path
) -> None:
    """A backup of a rewrite was verified whether or not anything had been written."""
    file = tmp_path / "offsets.ndjson"
    file.write_text(json.dumps({"topic": GLOBAL, "partition": 0, "key": A.decode(), "value": '{"n":1}'}))
    words = ("import", str(file), "--store", GLOBAL, "--rewrite", "--yes", "-o", "json")
    world.topics.fail_next("record", EosctlError("the broker went away"))
    failed = run(*words)
    assert failed.exit_code == 1
    cut_off = run("verify", str(failed.json()["data"]["backup"]), "-o", "json").json()
    assert (cut_off["exit_code"], [row["status"] for row in cut_off["data"]["rows"]]) == (3, ["not_rewritten"])
    assert run("verify", str(failed.json()["data"]["backup"]), "--before").exit_code == 0
    done = run(*words)
    assert done.exit_code == 0
    assert run("verify", str(done.json()["data"]["backup"])).exit_code == 0


def test_what_someone_wrote_since_is_shown(
    run: Run, world: OffsetWorld, backup: str, golden: Callable[[str, str], None]
) -> None:
    world.topics.put(OWN, A, b'{"n":8}')
    done = run("verify", backup)
    assert (done.exit_code, "1 of 2 keys does not hold what was written" in done.stderr) == (3, True)
    golden("offsets-verify-backup.txt", done.stdout.replace(backup, "BACKUP"))


def test_the_page_has_the_rows_that_differ(run: Run, world: OffsetWorld, backup: str, tmp_path: Path) -> None:
    path = tmp_path / "verify.html"
    assert run("verify", backup, "--report", str(path)).exit_code == 0
    assert "ok" in Page(path.read_text(encoding="utf-8")).texts
    world.topics.put(OWN, A, b'{"n":"<img>"}')
    assert run("verify", backup, "--report", str(path)).exit_code == 3
    page = Page(path.read_text(encoding="utf-8"))
    assert page.open == []
    assert {"findings", "STATUS", "differs", "own-3", '{"n":"<img>"}'} <= set(page.texts)
    assert page.of("img") == []


def test_what_an_open_transaction_hides_is_not_claimed(run: Run, world: OffsetWorld, backup: str) -> None:
    """It was called a difference, exit 3, whatever the transaction had written."""
    [record] = [each for each in world.topics.records(OWN) if each.key == A]
    world.topics.open_transaction(OWN, record.partition)
    assert run("verify", backup, "--timeout", "1s").exit_code == 0, "what is hidden is nobody's of these"
    world.topics.put(OWN, A, b"1")
    done = run("verify", backup, "--timeout", "1s", "-o", "json").json()
    assert (done["exit_code"], {row["status"] for row in done["data"]["rows"]}) == (7, {"hidden"})
    assert done["data"]["summary"] == {"target_compared": 2, "target_differing": 0, "target_hidden": 1}
    assert [error["code"] for error in done["errors"]] == ["open_transaction"]
    assert run("verify", backup, "--timeout", "1s", "--strict").exit_code == 3
    world.topics.put(OWN, B, b"1")
    assert run("verify", backup, "--timeout", "1s").exit_code == 3, "a difference that can be seen comes first"


def test_a_file_that_does_not_tell_what_was_written(run: Run, world: OffsetWorld, tmp_path: Path) -> None:
    path = tmp_path / "plain.ndjson"
    path.write_text(run("export", "--store", "global").stdout)
    assert run("verify", str(path)).exit_code == 2
    assert run("verify", str(path), "--before").exit_code == 0, "an export can be compared with its topic"
    world.topics.put(GLOBAL, A, None)
    assert run("verify", str(path), "--before").exit_code == 3
    assert run("verify", "/nosuch", "--before").exit_code == 2


def test_keys_that_connect_ignores_go_through_export_import_and_restore(
    run: Run, world: OffsetWorld, tmp_path: Path
) -> None:
    """They used to be left out of an import, and a backup that held one could not be restored."""
    path = tmp_path / "odd.ndjson"
    for number, key in enumerate(ODD):
        world.topics.put(GLOBAL, key, b"%d" % number)
        world.topics.put(GLOBAL, b'["c",{"f":"%d"}]' % number, b"{}")
    world.topics.put(GLOBAL, None, b"no key")
    path.write_text(run("export", "--store", "global").stdout)
    done = run("import", str(path), "--store", "copy", "--yes", "-o", "json").json()
    assert done["exit_code"] == 0, done["errors"]
    wanted = {key: value for key, value in world.topics.newest(GLOBAL).items() if key is not None}
    assert world.topics.newest("copy") == wanted
    assert [error["code"] for error in done["errors"]] == ["no_key", "ignored_keys"]
    odd = [row for row in done["data"]["rows"] if row["connector"] is None]
    assert [(row["source_partition"], row["outcome"]) for row in odd] == [(None, "written")] * len(ODD)
    assert run("verify", done["data"]["backup"]).exit_code == 0

    world.topics.put("copy", b"junk", b"over it")
    again = run("import", str(path), "--store", "copy", "--yes", "-o", "json").json()["data"]
    assert (again["summary"]["counts"]["write"], world.topics.newest("copy")) == (1, wanted)
    assert run("restore", again["backup"], "--yes").exit_code == 0
    assert world.topics.newest("copy") == {**wanted, b"junk": b"over it"}


@pytest.mark.parametrize("output", ["json", "yaml"])
@pytest.mark.parametrize("form", [[], ["-"], ["--format", "rest", "--connector", "c"]])
def test_records_and_a_report_do_not_both_fit_on_stdout(run: Run, tmp_path: Path, output: str, form: list[str]) -> None:
    """stdout used to hold neither one document nor an envelope."""
    done = run("export", "--store", "global", *form, "-o", output)
    assert (done.exit_code, "Name a FILE" in done.stdout + done.stderr) == (2, True)
    assert run("export", "--store", "global", str(tmp_path / "f"), "-o", output).exit_code == 0


def test_lines_on_stdout_are_records(run: Run) -> None:
    for words in ([], ["-o", "ndjson"]):
        lines = run("export", "--store", "global", *words).stdout.splitlines()
        assert [json.loads(line)["key"] for line in lines] == [B.decode(), A.decode()] or len(lines) == 2


@pytest.mark.parametrize(("partition", "cell"), [(3, "offsets-c-3"), (None, "offsets-c")])
def test_a_key_that_is_nowhere_has_no_partition(partition: int | None, cell: str) -> None:
    """Before the plan was applied the column had `offsets-c-None`."""
    assert StoredPlace(topic="offsets-c", partition=partition).cell() == cell
