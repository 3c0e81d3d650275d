"""`acls generate | check --for streams|flink`: what these need, and how it is judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eosctl.core.acls.table import ApplicationScope, application_rights

Invoke = Callable[..., Any]


def lines(scope: ApplicationScope) -> list[str]:
    return [
        f"{right.operation} {right.resource}{' ?' if right.optional else ''}" for right in application_rights([scope])
    ]


def test_what_streams_needs() -> None:
    """Its ids, internal topics and group begin with the application.id; the dash keeps `orders-eu` out of `orders`."""
    assert lines(ApplicationScope("streams", "app", ("in",), ("out*",))) == [
        "WRITE TransactionalId app- (prefix)",
        "DESCRIBE TransactionalId app- (prefix)",
        "READ Group app",
        "DESCRIBE Group app",
        "READ Topic app- (prefix)",
        "WRITE Topic app- (prefix)",
        "CREATE Topic app- (prefix)",
        "DELETE Topic app- (prefix)",
        "DESCRIBE Topic app- (prefix)",
        "DESCRIBE_CONFIGS Topic app- (prefix) ?",
        "READ Topic in",
        "DESCRIBE Topic in",
        "WRITE Topic out (prefix)",
        "DESCRIBE Topic out (prefix)",
    ]


def test_what_flink_needs() -> None:
    assert lines(ApplicationScope("flink", "sink", (), ("out",), ("g",), old_brokers=True)) == [
        "WRITE TransactionalId sink- (prefix)",
        "DESCRIBE TransactionalId sink- (prefix)",
        "READ Group g ?",
        "WRITE Topic out",
        "DESCRIBE Topic out",
        "IDEMPOTENT_WRITE Cluster kafka-cluster",
        "READ Topic out ?",
    ]


def test_a_right_that_two_applications_need_is_told_once() -> None:
    scopes = [ApplicationScope("streams", name, ("in",)) for name in ("a", "b")]
    assert len(application_rights(scopes)) == 2 * 10 + 2


def test_generate_needs_no_cluster_and_no_group(invoke: Invoke) -> None:
    words = ["acls", "generate", "--for", "streams", "--application", "app", "--input-topic", "in"]
    document = invoke(*words, "--output-topic", "out", "--principal", "User:s", "-o", "json").json()
    assert (document["exit_code"], document["errors"]) == (0, [])
    assert {(row["role"], row["principal"]) for row in document["data"]["rows"]} == {("application", "User:s")}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--for", "streams"], "--for and --application go together"),
        (["--application", "a"], "--for and --application go together"),
        (["--for", "flink", "--application", ""], "--for and --application go together"),
        (["--for", "flink", "--application", "a", "--connector", "c"], "no options of Connect's"),
        (["--for", "flink", "--application", "a", "--role", "producer"], "no options of Connect's"),
        (["--for", "streams", "--application", "a", "--consumer-group", "g"], "is its application.id"),
        (["--for", "streams", "--application", "a", "--input-topic", "a b"], "can't be a topic"),
    ],
)
def test_what_does_not_go_together(invoke: Invoke, words: list[str], says: str) -> None:
    outcome = invoke("acls", "generate", *words)
    assert (outcome.exit_code, says in outcome.stderr) == (2, True), outcome.stderr
