"""Rights on the topic that offsets move to: what is certainly lacking is refused, what can't be known is said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.acls.lines import Acl
from eosctl.core.offsets.names import GLOBAL as GLOBAL_STORE
from eosctl.core.workers.config import parse_worker_config
from eosctl.errors import RefusedError, UnauthorizedError
from eosctl.offsets.switch.plan import SwitchPlan, SwitchRequest, plan_switch
from tests.fakes.acls import FakeAclStore
from tests.fakes.switching import GLOBAL, NAME, URL, SwitchWorld

OWN = "own"
_LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="{}" password="p";'
NEEDED = [
    Acl("User:connect", "WRITE", "Topic", OWN, "LITERAL"),
    Acl("User:connect", "READ", "Topic", OWN, "LITERAL"),
]


def app_of(world: SwitchWorld, tmp_path: Path, *, files: bool = True) -> App:
    """With `files` the worker's file says that all of its clients are User:connect."""
    jaas = _LOGIN.format("connect")
    login = f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={jaas}\n"
    lines = [f"listeners={URL}\ngroup.id=g\nbootstrap.servers=memory:1\n", login]
    for prefix in ("producer.", "consumer.", "admin."):
        lines += [f"{prefix}{line}\n" for line in login.splitlines()]
    config = parse_worker_config("".join(lines), source="w0.properties")
    app = world.app(tmp_path)
    return replace(app, target=replace(app.target, worker_configs=(config,) if files else ()))


def plan(
    tmp_path: Path, acls: Sequence[Acl], *, files: bool = True, config: Mapping[str, str] = MappingProxyType({})
) -> SwitchPlan:
    world = SwitchWorld(acls=FakeAclStore(acls))
    world.place("RUNNING", **config)
    return plan_switch(app_of(world, tmp_path, files=files), SwitchRequest(NAME, OWN))


def test_with_the_rights_nothing_is_said(tmp_path: Path) -> None:
    assert plan(tmp_path, NEEDED).problems() == []


@pytest.mark.parametrize("lacking", [0, 1])
def test_a_right_that_is_lacking_is_refused_before_anything_is_stopped(tmp_path: Path, lacking: int) -> None:
    """Without READ the worker polled in a hot loop after the switch, and its log grew by megabytes a second."""
    with pytest.raises(RefusedError) as caught:
        plan(tmp_path, [NEEDED[1 - lacking]])
    operation = NEEDED[lacking].operation
    assert caught.value.message.startswith(f"{NAME} could not use topic {OWN}: ")
    assert f"no ACL allows {operation} on Topic {OWN}" in caught.value.message
    assert f"--operation {operation.title()}" in str(caught.value.hint)


def test_a_login_of_the_connectors_own_is_whom_it_is_about(tmp_path: Path) -> None:
    jaas = {"consumer_override_sasl_jaas_config": _LOGIN.format("orders")}
    with pytest.raises(RefusedError, match=r"consumer User:orders: no ACL allows READ, DESCRIBE on Topic own"):
        plan(tmp_path, NEEDED, config=jaas)
    assert plan(tmp_path, [*NEEDED, replace(NEEDED[1], principal="User:orders")], config=jaas).problems() == []


@pytest.mark.parametrize("secret", [True, False])
def test_principals_that_nobody_tells_are_said_to_be_unknown(tmp_path: Path, secret: bool) -> None:
    config = {"consumer_override_sasl_jaas_config": _LOGIN.format("${file:/secrets:user}")} if secret else {}
    [problem] = plan(tmp_path, NEEDED, files=secret, config=config).problems()
    assert (problem.code, problem.severity) == ("rights_unknown", "warning")
    names = "consumer" if secret else "producer, consumer, admin"
    assert f"the principal of its {names} is unknown" in problem.message


def test_acls_that_may_not_be_read_are_said_to_be_unknown(tmp_path: Path) -> None:
    world = SwitchWorld(acls=FakeAclStore(refuse=UnauthorizedError("DESCRIBE on the cluster is missing")))
    [problem] = plan_switch(app_of(world, tmp_path), SwitchRequest(NAME, OWN)).problems()
    assert problem.message.endswith("the ACLs can't be read: DESCRIBE on the cluster is missing")


@pytest.mark.parametrize(("mode", "refused"), [("enabled", True), ("disabled", False)])
def test_on_the_way_back_the_connector_needs_the_global_topic_only_with_exactly_once_support(
    tmp_path: Path, mode: str, refused: bool
) -> None:
    world = SwitchWorld({URL: mode}, acls=FakeAclStore(NEEDED))
    world.place("RUNNING", offsets_storage_topic=OWN)
    world.topics.add_topic(OWN, 5)
    request = SwitchRequest(NAME, GLOBAL_STORE)
    if refused:
        with pytest.raises(RefusedError, match=f"{NAME} could not use topic {GLOBAL}: "):
            plan_switch(app_of(world, tmp_path), request)
        return
    assert plan_switch(app_of(world, tmp_path), request).problems() == []
