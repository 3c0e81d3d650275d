"""Transactional ids: formatting, and attribution that admits what can't be known."""

from __future__ import annotations

import pytest

from eosctl.core.ids import Owner, leader_transactional_id, owner_of, task_transactional_id, task_transactional_ids


def test_formats_are_connects_own() -> None:
    assert task_transactional_id("connect-eos", "a-b", 3) == "connect-eos-a-b-3"
    assert leader_transactional_id("connect-eos") == "connect-cluster-connect-eos"
    assert task_transactional_ids("g", "c", 2) == ["g-c-0", "g-c-1"]
    assert task_transactional_ids("g", "c", 0) == []


@pytest.mark.parametrize(
    ("transactional_id", "group", "connectors", "owner"),
    [
        ("g-c-0", "g", (), Owner("task", "c", 0)),
        ("g-a-b-12", "g", (), Owner("task", "a-b", 12)),
        ("g-a-b-12", "g", ("a-b",), Owner("task", "a-b", 12)),
        ("g-a-b-12", "g", ("other",), Owner("other")),
        ("connect-cluster-g", "g", (), Owner("leader")),
        ("connect-cluster-g", "h", (), Owner("other")),
        # a task of group `connect`, or the leader of group `x-0`?
        ("connect-cluster-x-0", "connect", (), Owner("ambiguous")),
        ("connect-cluster-x-0", "connect", ("cluster-x",), Owner("task", "cluster-x", 0)),
        ("connect-cluster-x-0", "connect", ("c",), Owner("other")),
        ("connect-cluster-7", "7", (), Owner("leader")),
        ("connect-cluster-connect-7", "connect-7", (), Owner("leader")),
        ("g-c-01", "g", (), Owner("other")),
        ("g-c-", "g", (), Owner("other")),
        ("g--0", "g", (), Owner("other")),
        ("g-c-٣", "g", (), Owner("other")),
        ("g-c-x", "g", (), Owner("other")),
        ("anything", None, (), Owner("other")),
        ("", "g", (), Owner("other")),
    ],
)
def test_owner(transactional_id: str, group: str | None, connectors: tuple[str, ...], owner: Owner) -> None:
    assert owner_of(transactional_id, group, connectors) == owner
