"""Whose the ids in `txn list | describe | producers | log` are, where the group's own name looks like a leader's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set

import pytest

from eosctl.app import App
from eosctl.core.ids import TransactionalId
from eosctl.core.transaction_log import TOPIC
from eosctl.report import Report, plain
from eosctl.txn.list import ListFilter, describe_transactions, list_transactions
from eosctl.txn.log import LogRequest, read_transaction_log
from eosctl.txn.owners import owners_of_ids
from eosctl.txn.partitions import list_producers
from tests.fakes.world import CONFIGS, World

ID = TransactionalId("connect-cluster-c-0")


def look_at_log(app: App) -> Report:
    return read_transaction_log(app, LogRequest(transactional_ids=(ID,)))


LOOKS = [
    pytest.param(lambda app: list_transactions(app, ListFilter(pattern=ID)), id="list"),
    pytest.param(lambda app: describe_transactions(app, [ID]), id="describe"),
    pytest.param(lambda app: list_producers(app, "t", None), id="producers"),
    pytest.param(look_at_log, id="log"),
]


@pytest.fixture
def world() -> World:
    """Group connect-cluster, as many distributions call theirs, with a transaction of task 0 of connector c."""
    world = World(group_id="connect-cluster")
    state = world.brokers.state
    state.add_topic(TOPIC, 3)
    state.open_transaction(ID, ("t", 0), epoch=1)
    world.topics.put(TOPIC, b"\0\0" + len(ID).to_bytes(2, "big") + ID.encode(), None)
    return world


def owner(report: Report) -> object:
    [row] = report.rows
    return plain(row)["owner"]


@pytest.mark.parametrize("look", LOOKS)
def test_a_task_of_a_group_called_connect_cluster_is_a_task(world: World, look: Callable[[App], Report]) -> None:
    """All of them said `ambiguous`, though no group is there whose leader could have the id; `fence` did not."""
    assert owner(look(world.app())) == {"kind": "task", "connector": "c", "task": 0, "application": None}


@pytest.mark.parametrize("look", LOOKS)
def test_where_a_group_fits_the_config_topic_decides(world: World, look: Callable[[App], Report]) -> None:
    world.other_group("c-0", "http://x1:8083")
    assert owner(look(world.app()))["kind"] == "ambiguous"  # type: ignore[index]
    world.topics.add_topic(CONFIGS, 1)
    world.keep_config("connector-d", {"properties": {}})
    assert owner(look(world.app()))["kind"] == "other"  # type: ignore[index]


def test_nothing_more_is_asked_for_ids_that_read_in_one_way(world: World) -> None:
    """A listing of many thousand ids needs no groups and no config topic."""
    asked: list[str] = []
    world.brokers.calls.before("list_groups", lambda _call: asked.append("groups"))
    world.brokers.state.open_transaction("g-c-0", ("t", 0), epoch=1)
    list_transactions(world.app(), ListFilter(pattern="g-.*"))
    assert asked == []
    list_transactions(world.app(), ListFilter())
    assert asked == ["groups"]


EU = TransactionalId("connect-cluster-eu-orders-0")


def test_an_id_of_the_group_connect_cluster_eu_is_no_task_of_connect_cluster(world: World) -> None:
    """It was `task eu-orders/0` of ours, although the connectors are known, and there is no such one."""
    state = world.brokers.state
    state.open_transaction(EU, ("u", 0), epoch=1)
    world.other_group("connect-cluster-eu", "http://x1:8083")

    def owners(app: App) -> dict[str, object]:
        listed = list_transactions(app, ListFilter()).rows
        described = describe_transactions(app, [EU]).rows
        return {row.transactional_id: row.owner.kind for row in (*listed, *described)}

    assert owners(world.app()) == {ID: "task", EU: "ambiguous"}
    world.topics.add_topic(CONFIGS, 1)
    world.keep_config("connector-c", {"properties": {}})
    assert owners(world.app()) == {ID: "task", EU: "other"}
    assert owners(world.app(group_id=None)) == {ID: "task", EU: "ambiguous"}


class Names(frozenset[str]):
    """Counts how often it is gone through or joined with another."""

    uses: int

    def __new__(cls, count: int) -> Names:
        made = super().__new__(cls, (f"c{number}" for number in range(count)))
        made.uses = 0
        return made

    def __iter__(self) -> Iterator[str]:
        self.uses += 1
        return super().__iter__()

    def __or__(self, other: Set[object]) -> frozenset[str]:
        self.uses += 1
        return frozenset(self).union(str(each) for each in other)


@pytest.mark.parametrize("prefix", ["g", "connect-cluster"])
def test_no_set_of_names_is_made_per_id(prefix: str) -> None:
    """`fence --prefix` with 100,000 ids and 1,000 connectors made one for each id."""
    app, uses = World(group_id=prefix).app(), set[int]()
    for count in (1, 200):
        names = Names(50)
        ids = [TransactionalId(f"{prefix}-c{number}-0") for number in range(count)]
        owners = owners_of_ids(app, ids, connectors=names, running=frozenset({"c0"}), groups=frozenset({prefix}))
        assert (len(owners), owners[ids[0]].kind) == (count, "task")
        uses.add(names.uses)
    assert len(uses) == 1
