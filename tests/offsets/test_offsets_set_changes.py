"""`eosctl offsets set` as typed: what its plan says of the offsets that it changes, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conftest import Outcome
from tests.fakes.switching import GLOBAL, SwitchWorld

Run = Callable[..., Outcome]
SERVER = '{"server":"s"}'
POSTGRES = b'["c",{"server":"s"}]'
AT = b'{"lsn":28717056,"txId":555,"lsn_proc":28717056}'


@pytest.fixture
def world() -> SwitchWorld:
    """A stopped connector with an offset of Debezium PostgreSQL."""
    world = SwitchWorld()
    world.place("STOPPED")
    world.topics.put(GLOBAL, POSTGRES, AT)
    return world


def to(offset: str, partition: str = SERVER) -> list[str]:
    return ["set", "--connector", "c", "--partition", partition, "--offset", offset]


def warnings(done: Outcome) -> dict[str, str]:
    return {each["code"]: each["message"] for each in done.json()["errors"]}


def test_the_plan_says_member_by_member_what_changes(run: Run) -> None:
    """`{"pos":1}` over `{"position":1}` was written without a word, and the task began anew."""
    plan = run(*to('{"lsn":28000000,"lsn_proc":28717057,"extra":true}'), "--dry-run")
    assert plan.exit_code == 0
    assert [line for line in plan.stdout.splitlines() if line.startswith(SERVER)] == [
        f"{SERVER} lsn: 28717056 (0/1B63000) -> 28000000 (0/1AB3F00), changed",
        f"{SERVER} txId: 555 -> -, missing",
        f"{SERVER} lsn_proc: 28717056 (0/1B63000) -> 28717057 (0/1B63001), forward: what lies between is skipped",
        f"{SERVER} extra: - -> true, new",
    ]


def test_the_result_does_not_say_it_twice(run: Run) -> None:
    done = run(*to('{"lsn":1,"txId":555,"lsn_proc":1}'), "--yes")
    assert (done.exit_code, done.stderr.count("lsn: 28717056")) == (0, 1)
    assert "lsn: 28717056" not in done.stdout


def test_another_type_is_refused_before_anything_is_written(run: Run, world: SwitchWorld) -> None:
    """`"lsn":"0/1B63000"` for the number was written, and the task died of a ClassCastException at its start."""
    command = to('{"lsn":"0/1B63000","txId":555,"lsn_proc":28717056}')
    refused = run(*command, "--yes")
    assert (refused.exit_code, world.topics.newest(GLOBAL)[POSTGRES]) == (6, AT)
    assert f"lsn of {SERVER} is an integer now, and would be text" in refused.stderr
    assert "0/1B63000 is the number 28717056." in refused.stderr
    assert "--force-shape writes what was given" in refused.stderr
    dry = run(*command, "--dry-run", "-o", "json")
    assert (dry.exit_code, "would be refused" in warnings(dry)["refused"]) == (0, True)
    assert dry.json()["data"]["changes"] == [
        {
            "source_partition": {"server": "s"},
            "member": "lsn",
            "change": "type",
            "before": 28717056,
            "after": "0/1B63000",
            "lsn": {"before": "0/1B63000", "after": None},
        }
    ]


def test_force_shape_writes_it_and_says_so(run: Run, world: SwitchWorld) -> None:
    world.connect.version = "4.3.1"
    done = run(*to('{"lsn":1.5,"lsn_proc":"x"}'), "--force-shape", "--yes", "-o", "json").json()
    assert (done["exit_code"], done["data"]["overrides"], done["data"]["via"]) == (0, ["force-shape"], "rest")
    assert world.topics.newest(GLOBAL)[POSTGRES] == b'{"lsn_proc":"x","lsn":1.5}'


def test_two_members_of_another_type_are_counted(run: Run) -> None:
    refused = run(*to('{"lsn":1.5,"lsn_proc":"x"}'), "--yes")
    assert "lsn of" in refused.stderr
    assert "a number with a point, and 1 more member: a task" in refused.stderr


def test_a_way_back_says_what_postgresql_can_still_send(run: Run) -> None:
    """Put further back, the task began at confirmed_flush_lsn all the same: one row was read again of many."""
    done = run(*to('{"lsn":1,"txId":555,"lsn_proc":1}'), "--dry-run", "-o", "json")
    assert list(warnings(done)) == ["source_keeps"]
    [problem] = done.json()["errors"]
    assert "confirmed_flush_lsn" in problem["message"]
    assert "signal table" in problem["hint"]


def test_a_way_forward_says_that_records_are_skipped(run: Run) -> None:
    done = run(*to('{"lsn":28717057,"txId":555,"lsn_proc":28717057}'), "--dry-run", "-o", "json")
    assert warnings(done) == {"goes_forward": f"1 offset goes forward ({SERVER}): what lies between is not read"}


@pytest.mark.parametrize(
    ("offset", "codes"),
    [
        pytest.param('{"txId":555,"lsn":28717056,"lsn_proc":28717056}', [], id="the same in another order"),
        pytest.param('{"lsn":28717056,"txId":1,"lsn_proc":28717056}', [], id="a label"),
        pytest.param(
            '{"txId":555,"lsn":28717056,"lsn_proc":28717056,"new":1}',
            ["order_unknown", "source_keeps"],
            id="a new member",
        ),
    ],
)
def test_what_cannot_be_compared_is_no_way_forward(run: Run, offset: str, codes: list[str]) -> None:
    assert sorted(warnings(run(*to(offset), "--dry-run", "-o", "json"))) == codes


def test_a_store_that_lacks_the_key_is_compared_with_the_one_that_has_it(run: Run, world: SwitchWorld) -> None:
    """Both stores are written; where they hold the same, each change is said once."""
    world.place("STOPPED", offsets_storage_topic="own")
    world.topics.add_topic("own", 5)
    done = run(*to('{"lsn":1,"txId":555,"lsn_proc":28717056}'), "--via", "topic", "--dry-run", "-o", "json").json()
    assert [row["target"]["topic"] for row in done["data"]["rows"]] == ["own", GLOBAL]
    assert [row["member"] for row in done["data"]["changes"]] == ["lsn"]
    world.topics.put("own", POSTGRES, b'{"lsn":2,"txId":555,"lsn_proc":28717056}')
    done = run(*to('{"lsn":1,"txId":555,"lsn_proc":28717056}'), "--via", "topic", "--dry-run", "-o", "json").json()
    assert [(row["member"], row["before"]) for row in done["data"]["changes"]] == [("lsn", 2), ("lsn", 28717056)]


def test_what_is_no_offset_and_what_is_new_has_nothing_to_compare_with(run: Run, world: SwitchWorld) -> None:
    world.topics.put(GLOBAL, POSTGRES, b"[1]")
    odd = run(*to('{"lsn":1}'), "--dry-run", "-o", "json")
    new = run(*to('{"lsn":1}', '{"server":"t"}'), "--dry-run", "-o", "json")
    assert (odd.json()["data"]["changes"], new.json()["data"]["changes"]) == ([], [])
    assert list(warnings(odd)) == ["source_keeps"]
    assert sorted(warnings(new)) == ["new_key", "source_keeps"]


def test_wide_shows_log_sequence_numbers_as_postgresql_does(run: Run) -> None:
    """28717056 had to be turned into 0/1B63000 by hand, to compare it with pg_replication_slots."""
    row = run("list", "--connector", "c", "-o", "wide").stdout.splitlines()[2]
    assert '{"lsn":"0/1B63000","lsn_proc":"0/1B63000"}' in row
    plan = run(*to('{"lsn":1,"txId":555,"lsn_proc":1}'), "--dry-run", "-o", "wide").stdout
    assert ("BEFORE-LSN" in plan, '{"lsn":"0/1","lsn_proc":"0/1"}' in plan) == (True, True)


@pytest.mark.parametrize("depth", [500, 850])
def test_what_is_nested_too_deep_to_show_may_be_written_over(run: Run, world: SwitchWorld, depth: int) -> None:
    """The plan ended in a RecursionError."""
    deep = b"[" * depth + b"]" * depth
    world.topics.put(GLOBAL, POSTGRES, b'{"lsn":1,"was":' + deep + b"}")
    plan = run(*to('{"lsn":2}'), "--dry-run", "-o", "json")
    [_lsn, was] = plan.json()["data"]["changes"]
    assert (plan.exit_code, was["change"], was["before"]) == (0, "missing", deep.decode())


@pytest.mark.parametrize(
    ("gtids", "change", "codes"),
    [
        pytest.param("0-4711-4141", "forward", ["goes_forward"], id="ahead"),
        pytest.param("0-4711-3941", "backward", ["source_keeps"], id="behind"),
        pytest.param("1-4711-1", "mixed", ["goes_forward", "source_keeps"], id="another domain"),
        pytest.param("0-4712-4000", "changed", ["order_unknown", "source_keeps"], id="who knows"),
    ],
)
def test_gtids_say_which_way_it_goes(run: Run, world: SwitchWorld, gtids: str, change: str, codes: list[str]) -> None:
    """They were never compared: 250 records were skipped without a word, and file and pos were said to count."""
    world.topics.put(GLOBAL, POSTGRES, b'{"file":"bin.000003","pos":900,"gtids":"0-4711-4041"}')
    done = run(*to(f'{{"file":"bin.000003","pos":559,"gtids":"{gtids}"}}'), "--dry-run", "-o", "json")
    assert [(row["member"], row["change"]) for row in done.json()["data"]["changes"]] == [
        ("pos", "changed"),
        ("gtids", change),
    ]
    assert sorted(warnings(done)) == codes


def test_a_file_and_pos_that_gtids_overrule_go_nowhere(run: Run, world: SwitchWorld) -> None:
    """`pos` was said to have what lies between read again, and nothing was."""
    world.topics.put(GLOBAL, POSTGRES, b'{"file":"bin.000003","pos":900,"gtids":"0-4711-4041"}')
    done = run(*to('{"file":"bin.000003","pos":559,"gtids":"0-4711-4041"}'), "--dry-run", "-o", "json")
    assert [(row["member"], row["change"]) for row in done.json()["data"]["changes"]] == [("pos", "changed")]
    assert "goes_forward" not in warnings(done)


AT_COPY = b'{"lsn_proc":100,"lsn_commit":100,"messageType":"INSERT","lsn":100,"lsn_events_processed":2}'


@pytest.mark.parametrize(
    ("events", "order", "codes"),
    [
        pytest.param(',"lsn_events_processed":5', "ahead", ["goes_forward"], id="3 rows are skipped"),
        pytest.param(',"lsn_events_processed":1', "behind", ["source_keeps"], id="a row is read again"),
        pytest.param("", "incomparable", ["order_unknown", "source_keeps"], id="no counter"),
    ],
)
def test_a_place_within_a_copy_is_a_position(
    run: Run, world: SwitchWorld, events: str, order: str, codes: list[str]
) -> None:
    """Three rows were skipped as `changed`, and the plan warned of reading again."""
    world.topics.put(GLOBAL, POSTGRES, AT_COPY)
    offset = f'{{"lsn_proc":100,"lsn_commit":100,"messageType":"INSERT","lsn":100{events}}}'
    done = run(*to(offset), "--dry-run", "-o", "json")
    assert ([row["order"] for row in done.json()["data"]["rows"]], sorted(warnings(done))) == ([order], codes)


def test_what_ends_a_snapshot_skips_the_rest_of_it(run: Run, world: SwitchWorld) -> None:
    world.topics.put(GLOBAL, POSTGRES, b'{"lsn":100,"snapshot":"INITIAL","snapshot_completed":false}')
    done = run(*to('{"lsn":100}'), "--dry-run", "-o", "json")
    assert ([row["order"] for row in done.json()["data"]["rows"]], [*warnings(done)]) == (["ahead"], ["goes_forward"])


def test_a_number_of_an_unknown_connector_is_not_ahead(run: Run, world: SwitchWorld) -> None:
    """Any greater number was said to skip what lies between."""
    world.topics.put(GLOBAL, b'["c",{"mine":1}]', b'{"retries":3}')
    done = run(*to('{"retries":4}', '{"mine":1}'), "--dry-run", "-o", "json")
    assert ([row["order"] for row in done.json()["data"]["rows"]], [*warnings(done)]) == (
        ["incomparable"],
        ["order_unknown"],
    )


def test_get_says_what_must_hold_in_the_source(run: Run) -> None:
    done = run("get", "--connector", "c", "-o", "json").json()
    sources = {source["name"]: source for source in done["data"]["sources"]}
    assert sources["Debezium PostgreSQL"]["source_partitions"] == 1
    assert "replication slot" in sources["Debezium PostgreSQL"]["must_hold"]
    assert "Debezium PostgreSQL: " in run("get", "--connector", "c").stdout


def test_diff_has_the_order_of_the_two(run: Run, world: SwitchWorld) -> None:
    world.place("STOPPED", offsets_storage_topic="own")
    world.topics.add_topic("own", 5)
    world.topics.put("own", POSTGRES, b'{"lsn":28717057,"lsn_proc":28717057}')
    done = run("diff", "--connector", "c", "-o", "json").json()
    assert {row["status"]: row["order"] for row in done["data"]["rows"]} == {"differs": "ahead", "only_left": None}


def test_a_restore_that_goes_forward_says_so(run: Run) -> None:
    """A restore took back a way back, and nothing was said of what was not read."""
    backup = run(*to('{"lsn":1,"txId":555,"lsn_proc":1}'), "--via", "topic", "--yes", "-o", "json").json()
    done = run("restore", backup["data"]["backup"], "--dry-run", "-o", "json")
    assert [row["order"] for row in done.json()["data"]["rows"]] == ["ahead"]
    assert "goes_forward" in warnings(done)
