"""`eosctl audit` as typed, on a cluster in memory: what each wrong does to the verdict, and what does nothing to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.audit.happenings import (
    a_connector_that_is_gone,
    a_disabled_worker,
    a_marker_that_is_missing,
    a_task_that_moved,
    a_young_open_transaction,
    a_zombie_that_a_fence_stopped,
    a_zombie_that_nobody_stopped,
    an_aborted_transaction,
    an_application,
    an_open_transaction,
    another_connector,
    codes,
    connector,
    forgotten_but_with_offsets,
    forgotten_by_everybody,
    honest,
    no_offsets_at_all,
    nothing_written,
    null_offsets,
    offsets_in_the_former_topic,
    offsets_of_another_only,
    plain_writes,
)
from tests.audit.log_scene import KEY, OUT, START_MS, LogScene, run_on
from tests.conftest import Invoke
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
        other.commit(b"c", key=b'["c",{"task":"1"}]')
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
