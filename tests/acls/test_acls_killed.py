"""`acls apply` killed at every call to the cluster: the next run adds what is missing, and nothing twice."""

from __future__ import annotations

from pathlib import Path

from eosctl.acls.apply import apply_acls, plan_acls
from eosctl.app import App
from eosctl.core.acls.lines import AclRequest
from eosctl.errors import ExitCode
from tests.fakes.acls import FakeAclStore
from tests.fakes.config_topic import config_records, created
from tests.fakes.config_world import ConfigWorld
from tests.fakes.faults import EVERY, Kill, KilledError

REQUEST = AclRequest(connectors=("orders",), roles=("producer",), principals=("User:w",), output_topics=("out",))


def app_of(store: FakeAclStore, state_dir: Path) -> App:
    world = ConfigWorld(records=config_records(*created("orders", 3)), acls=store)
    return world.app(state_dir, timeout_s=20)


def test_killed_anywhere_the_next_run_adds_the_rest(tmp_path: Path) -> None:
    whole = FakeAclStore()
    apply_acls(app_of(whole, tmp_path), plan_acls(app_of(whole, tmp_path), REQUEST))
    kill_at = 0
    while True:
        kill_at += 1
        store, kill = FakeAclStore(), Kill(kill_at)
        store.before(EVERY, kill.tick)
        store.after("create", kill.tick)
        app = app_of(store, tmp_path)
        try:
            apply_acls(app, plan_acls(app, REQUEST))
        except KilledError:
            kill.at = None
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
