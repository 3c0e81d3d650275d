"""Connections that are cut between eosctl and a real broker: at chosen requests, and at seeded random bytes.

Both kinds of connection go through the proxy: eosctl's own and librdkafka's. Whatever the exit code says must be true:
0 means that everything is there, and else the same command without the faults ends as if there had been none.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from eosctl.core.ids import TransactionalId
from eosctl.core.transactions import TransactionDescription
from eosctl.kafka.transactions.admin import NativeTransactionAdmin
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke, Outcome
from tests.faults.conftest import Merge
from tests.faults.proxy import Api, Fate, Proxy, at, random_cuts

pytestmark = pytest.mark.live

OK, UNREACHABLE, PARTIAL = 0, 4, 7
SEEDS = range(3)
IDS = 300
Epochs = dict[str, tuple[int, int]]


@pytest.fixture
def ids(admin: NativeTransactionAdmin, unique: str) -> list[TransactionalId]:
    """Ids that the coordinator knows."""
    names = [TransactionalId(f"{unique}-{number}") for number in range(IDS)]
    assert all(answer.fault is None for answer in admin.fence(names, transaction_timeout_ms=60_000))
    return names


def epochs(admin: NativeTransactionAdmin, ids: list[TransactionalId]) -> Epochs:
    """Producer id and epoch of each, as the coordinator has them now."""
    found = admin.describe_transactions(ids)
    known = {name: told for name, told in found.items() if isinstance(told, TransactionDescription)}
    return {name: (told.producer_id, told.producer_epoch) for name, told in known.items()}


def fence(invoke: Invoke, tmp_path: Path, ids: list[TransactionalId], bootstrap_servers: str) -> Outcome:
    file = tmp_path / "ids"
    file.write_text("".join(f"{each}\n" for each in ids))
    return invoke("fence", "--from-file", str(file), "--yes", "-o", "json", "-b", bootstrap_servers)


def check_fenced(done: Outcome, before: Epochs, after: Epochs) -> None:
    """Every id has a row, and what is said to be fenced has just the epoch that was told."""
    rows = {row["transactional_id"]: row for row in done.json()["data"]["rows"]}
    assert rows.keys() == before.keys()
    fenced = [name for name, row in rows.items() if row["outcome"] == "fenced"]
    assert {rows[name]["outcome"] for name in rows.keys() - set(fenced)} <= {"failed", "unconfirmed"}
    for name in fenced:
        told = rows[name]["after"]
        assert after[name] == (told["producer_id"], told["producer_epoch"])
        assert after[name] != before[name]
    assert done.exit_code == (OK if len(fenced) == len(rows) else PARTIAL if fenced else UNREACHABLE)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_fence_tells_the_truth_wherever_it_is_cut(
    lone_broker: Stack,
    admin: NativeTransactionAdmin,
    invoke: Invoke,
    ids: list[TransactionalId],
    tmp_path: Path,
    seed: int,
) -> None:
    """It used to exit 1, and to ask no coordinator again, where the first connection of the writing was cut."""
    before = epochs(admin, ids)
    with Proxy(lone_broker.bootstrap_servers, cuts=random_cuts(seed, 12, most_bytes=8_000)) as proxy:
        done = fence(invoke, tmp_path, ids, proxy.address)
    assert proxy.cut > 0
    if done.json()["kind"] == "fence-result":
        check_fenced(done, before, epochs(admin, ids))
    else:
        assert done.exit_code == UNREACHABLE
        assert epochs(admin, ids) == before, "it ended before its plan was made"
    assert fence(invoke, tmp_path, ids, lone_broker.bootstrap_servers).exit_code == OK


@pytest.mark.parametrize("words", [("txn", "list"), ("offsets", "list")])
def test_a_listing_is_whole_or_none(lone_broker: Stack, invoke: Invoke, merge: Merge, words: tuple[str, ...]) -> None:
    """It used to exit 1 where librdkafka's question for the leaders was cut."""
    whole = invoke(*words, *merge.where, "-b", lone_broker.bootstrap_servers)
    assert whole.exit_code == OK, whole.stderr
    cut = 0
    for seed in SEEDS:
        with Proxy(lone_broker.bootstrap_servers, cuts=random_cuts(seed, 8, most_bytes=9_000)) as proxy:
            done = invoke(*words, *merge.where, "-b", proxy.address)
        cut += proxy.cut
        assert done.exit_code in (OK, UNREACHABLE), f"seed {seed}: {done.stderr}"
        rows = done.json()["data"].get("rows", [])
        assert len(rows) == (len(whole.json()["data"]["rows"]) if done.exit_code == OK else 0)
    assert cut > 0


@pytest.mark.parametrize("fate", [Fate.CUT, Fate.LOSE_ANSWER])
@pytest.mark.parametrize("api", [Api.INIT_PRODUCER_ID, Api.PRODUCE, Api.END_TXN])
def test_a_merge_goes_on_where_it_was_cut(
    lone_broker: Stack, invoke: Invoke, merge: Merge, api: Api, fate: Fate
) -> None:
    with Proxy(lone_broker.bootstrap_servers, on_request=at(api, fate, 1)) as proxy:
        done = invoke(*merge.words, "-b", proxy.address)
    assert proxy.cut == 1
    assert done.exit_code == OK, done.stderr
    assert {row["outcome"] for row in done.json()["data"]["rows"]} == {"written"}
    assert merge.written() == merge.count


@pytest.mark.parametrize("seed", SEEDS)
def test_a_merge_is_whole_or_none_wherever_it_is_cut(
    lone_broker: Stack, invoke: Invoke, merge: Merge, seed: int
) -> None:
    with Proxy(lone_broker.bootstrap_servers, cuts=random_cuts(seed, 16, most_bytes=40_000)) as proxy:
        done = invoke(*merge.words, "-b", proxy.address)
    assert proxy.cut > 0
    assert done.exit_code in (OK, UNREACHABLE, PARTIAL), done.stderr
    merge.check(done)
    merge.finish(invoke, lone_broker.bootstrap_servers)
