"""Two real groups whose tasks have the same transactional id: connector `b-c` of group `G`, `c` of group `G-b`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from eosctl.sandbox.settings import GroupSpec
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke
from tests.envelope import envelope_of
from tests.sandbox_fixtures import FileSource, added_group, group_flags, wait_until

pytestmark = pytest.mark.live


@dataclass(slots=True)
class Side:
    """One of the groups, its one connector, and the other group's task as eosctl should name it."""

    group: str
    source: FileSource
    rival: str
    flags: list[str]


@pytest.fixture
def sides(three_brokers: Stack, unique: str, tmp_path: Path) -> Iterator[tuple[Side, Side]]:
    """Both connectors run, the second started last, so that the id is its own."""

    def side(group: str, connector: str, url: str, rival: str) -> Side:
        path = tmp_path / f"{group}.txt"
        path.write_text("line\n")
        source = FileSource(url, connector, path, topic=f"topic-{group}")
        source.put()
        source.wait_running()
        source.wait_position(5)
        return Side(group, source, rival, [*group_flags(three_brokers, group), "-o", "json"])

    first, second = unique, f"{unique}-b"
    with (
        added_group(three_brokers, GroupSpec(first)) as (url,),
        added_group(three_brokers, GroupSpec(second)) as (other,),
    ):
        yield (
            side(first, "b-c", url, f"task 0 of connector c of group {second}"),
            side(second, "c", other, f"task 0 of connector b-c of group {first}"),
        )


def test_both_users_of_one_id_are_named_and_a_running_one_is_not_fenced(
    sides: tuple[Side, Side], invoke: Invoke, unique: str
) -> None:
    shared = f"{unique}-b-c-0"

    def rows(side: Side, *words: str, kind: str, exit_code: int = 0) -> Any:
        return envelope_of(invoke(*words, *side.flags), kind, exit_code)["data"]["rows"]

    for side in sides:
        (check,) = rows(side, "connectors", "check", kind="connectors-check", exit_code=3)
        assert (check["code"], check["severity"], check["subject"]) == ("id_collision", "error", side.source.name)
        assert shared in check["message"]
        assert side.rival in check["message"]
        counts = rows(side, "task-counts", "validate", kind="task-counts-validate")
        assert [finding["code"] for row in counts for finding in row["findings"]] == ["id_collision"]
        listed = {row["transactional_id"]: row["owner"] for row in rows(side, "txn", "list", kind="txn-list")}
        leaders = {each.group: listed[f"connect-cluster-{each.group}"]["kind"] for each in sides}
        assert leaders == {each.group: "leader" if each is side else "other" for each in sides}
        assert shared in listed
        for words in (["--connector", side.source.name], [shared]):
            refused = invoke("fence", *words, "--yes", *side.flags)
            assert refused.exit_code == 6, refused.stdout
            assert f"runs task 0 of connector {side.source.name} now" in refused.stderr

    loser, winner = sides
    loser.source.append("more")
    wait_until(lambda: loser.source.task_states() == ["FAILED"], what="the task that lost its id")
    assert winner.source.task_states() == ["RUNNING"]
    for side, codes in ((loser, {"id_collision", "task_fenced_or_expired"}), (winner, {"id_collision"})):
        examined = rows(side, "doctor", kind="doctor", exit_code=3)
        assert {row["code"] for row in examined if row["severity"] == "error"} == codes
        assert [side.rival in row["message"] for row in examined if row["check"] == "connectors"] == [True]
