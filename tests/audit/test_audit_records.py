"""`eosctl audit --unique` and `--sequence`: what only the records show."""

from __future__ import annotations

import pytest

from tests.audit.happenings import (
    codes,
    connector,
    honest,
    numbered,
)
from tests.audit.log_scene import OUT, LogScene, run_on
from tests.conftest import Invoke


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
