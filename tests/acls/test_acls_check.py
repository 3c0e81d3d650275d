"""`eosctl acls check`: the rights that are needed beside those that the brokers have."""

from __future__ import annotations

import pytest

from eosctl.core.acls.lines import Acl
from eosctl.core.acls.table import CONNECT_ROLES
from eosctl.errors import UnauthorizedError, UnsupportedError
from tests.acls.acl_commands import WHERE, check, codes, doors, needed
from tests.conftest import Invoke
from tests.fakes.acls import FakeAclStore


def test_nothing_is_wrong_where_every_right_is_there(invoke: Invoke) -> None:
    store = FakeAclStore()
    store.acls = needed(invoke, *WHERE, "--connector", "orders", "--output-topic", "out", doors=doors(store))
    outcome = check(invoke, store, "--strict")
    assert (outcome.exit_code, outcome.json()["data"]["rows"]) == (0, [])
    assert {right["verdict"] for right in outcome.json()["data"]["rights"]} == {"allowed"}


def test_each_right_that_is_missing_is_named_and_nothing_else(invoke: Invoke) -> None:
    """Of one principal per role: what another role has does not count."""
    store = FakeAclStore()
    users = [word for role in CONNECT_ROLES for word in ("--principal", f"{role}=User:{role}")]
    words = (*WHERE, "--connector", "orders", "--output-topic", "out", *users)
    rows = invoke("acls", "generate", *words, "-o", "json", doors=doors(store)).json()["data"]["rows"]
    every = [Acl(row["principal"], row["operation"], row["resource_type"], row["resource_name"]) for row in rows]
    for row, lost in zip(rows, every, strict=True):
        store.acls = [acl for acl in every if acl != lost]
        outcome = invoke("acls", "check", *words, "--strict", "-o", "json", doors=doors(store))
        exists = row["only_to_create"] and lost.name == "connect-configs"
        included = lost.operation == "DESCRIBE" and not (
            lost.principal == "User:admin" and lost.resource_type == "Topic"
        )
        expected = [] if exists or included else [("acl_missing", lost.name, [lost.operation])]
        assert (codes(outcome), outcome.exit_code) == (expected, 3 if expected else 0), lost


def test_a_deny_is_named_with_the_line_that_removes_it(invoke: Invoke) -> None:
    store = FakeAclStore()
    store.acls = needed(invoke, *WHERE, "--connector", "orders", "--output-topic", "out", doors=doors(store))
    store.acls.append(Acl("User:*", "ALL", "Topic", "ou", "PREFIXED", "DENY"))
    outcome = check(invoke, store)
    assert outcome.exit_code == 3
    (row,) = [row for row in outcome.json()["data"]["rows"] if row["severity"] == "error"]
    assert (row["code"], row["evidence"]["operations"]) == ("acl_denied", ["WRITE", "DESCRIBE"])
    assert row["fix"] == (
        "kafka-acls.sh --bootstrap-server localhost:1 --remove --force --deny-principal 'User:*' --operation All "
        "--topic ou --resource-pattern-type prefixed"
    )
    refused = invoke(
        "acls", "apply", *WHERE, "--connector", "orders", "--output-topic", "out", "--principal", "User:w", "--yes",
        doors=doors(store),
    )  # fmt: skip
    assert (refused.exit_code, store.created) == (6, [])
    assert row["fix"] in refused.stderr


def test_rights_for_single_hosts_are_warnings(invoke: Invoke) -> None:
    store = FakeAclStore([Acl("User:w", "ALL", "Group", "g", host="10.0.0.1")])
    words = ("acls", "check", *WHERE, "--role", "worker", "--principal", "User:w", "-o", "json")
    rows = invoke(*words, doors=doors(store)).json()["data"]["rows"]
    assert [row["code"] for row in rows if row["evidence"].get("resource_name") == "g"] == ["acl_for_some_hosts"]


def test_without_an_authorizer_there_is_nothing_to_grant(invoke: Invoke) -> None:
    store = FakeAclStore(refuse=UnsupportedError("the brokers have no authorizer"))
    outcome = check(invoke, store)
    assert (outcome.exit_code, [row["code"] for row in outcome.json()["data"]["rows"]]) == (0, ["no_authorizer"])
    words = ("acls", "apply", *WHERE, "--principal", "User:w", "--yes")
    assert invoke(*words, doors=doors(store)).exit_code == 1


def test_who_may_not_see_acls_is_told_so(invoke: Invoke) -> None:
    store = FakeAclStore(refuse=UnauthorizedError("not authorized", hint="kafka-acls.sh …"))
    assert check(invoke, store).exit_code == 5


@pytest.mark.parametrize("verb", ["check", "apply"])
def test_a_role_without_a_principal_is_a_question(invoke: Invoke, verb: str) -> None:
    outcome = invoke("acls", verb, *WHERE, "--principal", "worker=User:w", "--connector", "orders",
                     doors=doors(FakeAclStore()))  # fmt: skip
    assert outcome.exit_code == 2
    assert "no principal given for role producer" in outcome.stderr
