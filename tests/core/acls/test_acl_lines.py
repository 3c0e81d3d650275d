"""The printed kafka-acls line: everything that is known is in it, and no shell trips over the rest."""

from __future__ import annotations

import shlex

import pytest

from eosctl.core.acls.lines import grant_hint, kafka_acls_line
from eosctl.core.clients.settings import ClientSettings

ALICE = ClientSettings(("k1:9093", "k2:9093"), security_protocol="SASL_SSL", sasl_username="alice")


@pytest.mark.parametrize(
    ("operations", "resource_type", "name", "tail"),
    [
        (["WRITE"], "TransactionalId", "g-c-0", "--operation Write --transactional-id g-c-0"),
        (["DESCRIBE", "WRITE"], "Topic", "t", "--operation Describe --operation Write --topic t"),
        (["CLUSTER_ACTION"], "Cluster", "", "--operation ClusterAction --cluster"),
        (["DESCRIBE"], "Group", "my group; rm -rf /", "--operation Describe --group 'my group; rm -rf /'"),
        (["DESCRIBE"], "TransactionalId", "*", "--operation Describe --transactional-id '*'"),
    ],
)
def test_a_line_to_paste(operations: list[str], resource_type: str, name: str, tail: str) -> None:
    """A line for a secured listener used to lack the --command-config without which nothing connects to it."""
    line = kafka_acls_line(operations, resource_type, name, settings=ALICE)
    head = "kafka-acls.sh --bootstrap-server k1:9093,k2:9093 --command-config '<admin.properties>'"
    assert line == f"{head} --add --allow-principal User:alice {tail}"


def test_what_is_not_known_is_a_quoted_placeholder() -> None:
    line = kafka_acls_line(["READ"], "Topic", "t", settings=ClientSettings(("k1:9092",)))
    assert shlex.split(line)[1:7] == [
        "--bootstrap-server", "k1:9092", "--add", "--allow-principal", "User:<principal>", "--operation",
    ]  # fmt: skip
    assert "'User:<principal>'" in line


def test_a_hint_names_what_is_missing_and_what_would_be_next() -> None:
    ids = [f"id-{number}" for number in range(5)]
    lines = grant_hint("DESCRIBE", "TransactionalId", ids, settings=ALICE, then="WRITE").splitlines()
    assert lines[0] == "Missing: DESCRIBE on TransactionalId (and then WRITE). Grant it with:"
    assert [line.rsplit(" ", 1)[1] for line in lines[1:4]] == ids[:3]
    assert lines[4:] == ["... and for 2 more"]
