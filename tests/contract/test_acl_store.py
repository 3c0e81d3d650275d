"""One suite on both AclStores: the one in memory and the one on a real broker with an authorizer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from eosctl.core.acls.lines import Acl
from eosctl.core.clients.settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.kafka.acls import KafkaAclClient
from eosctl.ports import AclClient
from tests.fakes.acls import FakeAclStore
from tests.sandbox_fixtures import PATIENCE_S, wait_until
from tests.secure_stack import SecureStack


@pytest.fixture(params=["fake", pytest.param("real", marks=[pytest.mark.live, pytest.mark.on("secure_stack")])])
def store(request: pytest.FixtureRequest) -> Iterator[AclClient]:
    if request.param == "fake":
        fake = FakeAclStore()
        fake.late = 1
        yield fake
        return
    secure: SecureStack = request.getfixturevalue("secure_stack")
    settings = ClientSettings((secure.stack.bootstrap_servers,))
    with KafkaAclClient(settings, deadline=Deadline.after(2 * PATIENCE_S)) as real:
        yield real


def test_what_is_created_is_described_and_only_once(store: AclClient, unique: str) -> None:
    user = f"User:{unique}"
    wanted = [
        Acl(user, "WRITE", "Topic", f"{unique} ü"),
        Acl(user, "DESCRIBE_CONFIGS", "Topic", unique, "PREFIXED"),
        Acl(user, "READ", "Group", unique),
        Acl(user, "WRITE", "TransactionalId", "*"),
        Acl(user, "ALTER", "Cluster", "kafka-cluster", host="10.0.0.1"),
        Acl(user, "ALL", "Topic", unique, permission="DENY"),
    ]
    store.create(wanted)

    def mine() -> list[Acl]:
        return [acl for acl in store.describe() if acl.principal == user]

    wait_until(lambda: len(mine()) == len(wanted), what="the ACLs to be known to the broker")
    assert set(mine()) == set(wanted)
    assert mine() == sorted(mine(), key=lambda acl: (acl.resource_type, acl.name))
    store.create(wanted[:1])
    store.create([])
    assert len(mine()) == len(wanted)
    assert store.cluster_id()


def test_one_that_is_refused_does_not_keep_the_others_out(store: AclClient, unique: str) -> None:
    """A principal without its type is refused by the brokers themselves."""
    good, bad = Acl(f"User:{unique}", "READ", "Topic", unique), Acl(unique, "READ", "Topic", unique)
    failed = store.create([bad, good])
    assert list(failed) == [bad]
    assert "Could not parse principal" in failed[bad].message
    wait_until(lambda: good in store.describe(), what="the other ACL to be known to the broker")
