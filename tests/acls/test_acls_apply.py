"""`eosctl acls apply`: what is missing is added, and can be undone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from eosctl.core.acls.lines import Acl
from eosctl.errors import BrokerError, UnauthorizedError, UnreachableError
from tests.acls.acl_commands import WHERE, doors
from tests.conftest import Invoke, Outcome
from tests.envelope import envelope_of
from tests.fakes.acls import FakeAclStore
from tests.fakes.clock import FakeTime


def apply(invoke: Invoke, store: FakeAclStore, *words: str, **more: Any) -> Outcome:
    options = ("--connector", "orders", "--role", "producer", "--output-topic", "out", "--principal", "User:w")
    return invoke("acls", "apply", *WHERE, *options, *words, doors=doors(store), **more)


def test_only_what_is_missing_is_added_and_can_be_undone(invoke: Invoke) -> None:
    kept = Acl("User:w", "WRITE", "Topic", "out")
    store = FakeAclStore([kept])
    planned = apply(invoke, store, "--dry-run", "-o", "json")
    assert (planned.exit_code, store.created) == (0, [])
    done = apply(invoke, store, "--yes", "-o", "json")
    assert done.exit_code == 0
    assert kept not in store.created
    data = done.json()["data"]
    assert data["summary"]["counts"] == {"created": len(store.created), "kept": 2}  # WRITE includes DESCRIBE
    assert planned.json()["data"]["summary"]["counts"] == {"create": len(store.created), "keep": 2}
    assert all("--remove --force --allow-principal User:w" in line for line in data["undo"].splitlines())
    assert not [line for line in data["undo"].splitlines() if "Write" in line and "--topic out" in line]
    again = apply(invoke, store, "--yes", "-o", "json").json()
    assert (again["kind"], again["data"]["summary"]["counts"]) == ("acls-apply-plan", {"keep": len(store.created) + 2})


def test_acls_that_changed_since_the_plan_stop_it(invoke: Invoke) -> None:
    """Somebody grants a right right after the plan was made."""
    store = FakeAclStore()
    granted = Acl("User:w", "WRITE", "Topic", "out")
    store.after("describe", lambda _call: setattr(store, "acls", [granted]))
    outcome = apply(invoke, store, "--yes")
    assert (outcome.exit_code, store.created) == (6, [])
    assert "changed since the plan" in outcome.stderr


def test_nothing_is_added_to_another_cluster_than_that_of_the_plan(invoke: Invoke) -> None:
    """One that lacks the very same rights, as a new one does."""

    class Moved(FakeAclStore):
        """The brokers behind the address are others after the plan."""

        asked = 0

        def cluster_id(self) -> str:
            self.asked += 1
            return super().cluster_id() if self.asked == 1 else "another-cluster"

    store = Moved()
    outcome = apply(invoke, store, "--yes")
    assert (outcome.exit_code, store.created) == (6, [])
    assert "changed since the plan" in outcome.stderr


def test_an_acl_that_is_refused_is_a_row_and_the_others_can_be_undone(invoke: Invoke, tmp_path: Path) -> None:
    """It ended the command after others were created: no rows, no undo, exit 1."""
    store = FakeAclStore()
    store.fail_next("acl", BrokerError("creating ACLs failed: POLICY_VIOLATION: not this one"), skip=1)
    outcome = apply(invoke, store, "--yes", "-o", "json")
    document = envelope_of(outcome, "acls-apply-result", 7)
    [failed] = [row for row in document["data"]["rows"] if row["action"] == "failed"]
    assert failed["error"]["message"] == "creating ACLs failed: POLICY_VIOLATION: not this one"
    assert document["data"]["summary"]["counts"] == {"created": len(store.created), "failed": 1}
    assert len(document["data"]["undo"].splitlines()) == len({(acl.resource_type, acl.name) for acl in store.created})
    assert [error["message"] for error in document["errors"] if error["severity"] == "error"] == [
        "creating ACLs failed: POLICY_VIOLATION: not this one"
    ]
    [entry] = [json.loads(line) for line in (tmp_path / "state/eosctl/audit.jsonl").read_text().splitlines()]
    assert (entry["outcome"], entry["undo"]) == ("partial", document["data"]["undo"])


def test_acls_of_which_none_was_added_end_with_the_reason(invoke: Invoke) -> None:
    store = FakeAclStore()
    store.fail_always("acl", UnauthorizedError("not authorized: creating ACLs failed", hint="ALTER is missing"))
    outcome = apply(invoke, store, "--yes")
    assert (outcome.exit_code, store.created) == (5, [])
    assert "ALTER is missing" in outcome.stderr


def test_an_acl_without_an_answer_is_looked_for(invoke: Invoke) -> None:
    """The brokers may have added it before the answer was lost."""
    store = FakeAclStore()
    store.fail_next("acl", UnreachableError("no answer"), skip=1, done=True)
    outcome = apply(invoke, store, "--yes", "-o", "json")
    assert outcome.exit_code == 0
    assert {row["action"] for row in outcome.json()["data"]["rows"]} == {"created"}


def test_what_the_cluster_does_not_show_is_not_called_created(invoke: Invoke) -> None:
    """It was asked again and again without a pause."""
    store, time = FakeAclStore(), FakeTime()
    store.late = 10**6
    outcome = apply(invoke, store, "--yes", "--timeout", "1s", "-o", "json", clock=time.clock())
    assert 5 <= len(time.slept) <= 20
    assert outcome.exit_code == 7
    assert {row["action"] for row in outcome.json()["data"]["rows"]} == {"unconfirmed"}
    assert outcome.json()["data"]["undo"]


def test_a_typed_yes_adds_what_was_shown(invoke: Invoke) -> None:
    store = FakeAclStore()
    assert apply(invoke, store, input="y\n", can_ask=True).exit_code == 0
    assert store.created
