"""`acls apply` killed at every call to the cluster: the next run adds what is missing, and nothing twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from eosctl.core.acl import Acl
from eosctl.core.client_settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.errors import ExitCode
from eosctl.ops.acl_wanted import AclRequest
from eosctl.ops.acls_apply import apply_acls, plan_acls
from eosctl.ops.app import App
from eosctl.profiles import Target
from tests.fakes.acls import FakeAclStore
from tests.fakes.config_cluster import FakeCluster, config_records, created
from tests.fakes.faults import KilledError

REQUEST = AclRequest(connectors=("orders",), roles=("producer",), principals=("User:w",), output_topics=("out",))


class MortalStore(FakeAclStore):
    """Its calls count as calls from outside; within `create` some of the ACLs are there, others not."""

    def __init__(self) -> None:
        super().__init__()
        self.ticks, self.kill_at = 0, None

    kill_at: int | None

    def tick(self) -> None:
        self.ticks += 1
        if self.ticks == self.kill_at:
            raise KilledError

    def cluster_id(self) -> str:
        self.tick()
        return super().cluster_id()

    def describe(self) -> Sequence[Acl]:
        self.tick()
        return super().describe()

    def create(self, acls: Iterable[Acl]) -> None:
        for acl in acls:
            self.tick()
            super().create([acl])
        self.tick()


def app_of(store: FakeAclStore, state_dir: Path) -> App:
    doors = FakeCluster(records=config_records(*created("orders", 3))).doors() | {"open_acls": lambda _app: store}
    target = Target(client=ClientSettings(("memory:1",)), group_id="g")
    return App(target=target, deadline=Deadline.after(20), state_dir=state_dir, **doors)


def test_killed_anywhere_the_next_run_adds_the_rest(tmp_path: Path) -> None:
    whole = FakeAclStore()
    apply_acls(app_of(whole, tmp_path), plan_acls(app_of(whole, tmp_path), REQUEST))
    kill_at = 0
    while True:
        kill_at += 1
        store = MortalStore()
        store.kill_at = kill_at
        app = app_of(store, tmp_path)
        try:
            apply_acls(app, plan_acls(app, REQUEST))
        except KilledError:
            store.kill_at = None
        else:
            break
        plan = plan_acls(app, REQUEST)
        assert not set(plan.missing()) & set(store.acls), f"killed at call {kill_at}: one would be added twice"
        if plan.missing():
            assert apply_acls(app, plan).exit_code is ExitCode.OK, f"killed at call {kill_at}"
        assert plan_acls(app, REQUEST).missing() == [], f"killed at call {kill_at}"
        left_out = set(whole.acls) - set(store.acls)
        assert set(store.acls) <= set(whole.acls), f"killed at call {kill_at}"
        assert {acl.operation for acl in left_out} <= {"DESCRIBE"}, "a WRITE that was there already includes it"
    assert kill_at > len(whole.acls) + 5, "fewer calls than that were never made"
