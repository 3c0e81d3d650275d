"""Plans as values, and the rule for one key."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from eosctl.core.configs.records import Selection
from eosctl.core.offsets.migration import (
    ConnectorRoute,
    MigrationPlan,
    PlannedTopic,
    Tally,
    check_renames,
    plan_file_text,
    plan_routes,
    read_plan,
)
from eosctl.core.offsets.records import key_owner, renamed_key
from eosctl.core.offsets.views import KeyAction, Policy, mismatch
from eosctl.core.records import Bounds
from eosctl.errors import EosctlError, InputFileError, NotFoundError, UsageError
from tests.core.offsets.merging import decide_by_columns, decided_by_columns
from tests.fakes.decision import Cell, Decision, KeyClaim, decide, decide_claims

KEEP, TAKE, NEWEST, FAIL = Policy.KEEP_TARGET, Policy.TAKE_SOURCE, Policy.NEWEST, Policy.FAIL
OLD, NEW = 1_000, 2_000

TALLY = Tally(
    records=10,
    older=3,
    unowned=1,
    not_selected=2,
    superseded=1,
    keys=3,
    conflicts=1,
    scattered=0,
    counts={"write": 1, "delete": 1, "keep": 1, "conflict": 0},
    connector_counts={"a": {"write": 1, "keep": 1}, "ü": {"delete": 1}},
)
PLAN = MigrationPlan(
    cluster_id="cluster",
    group_id=None,
    policy=NEWEST,
    sources=(PlannedTopic("connect-offsets", "id1", 25, 3, (Bounds(0, 0, 7, 9), Bounds(1, 2, 2, 2))),),
    targets=(PlannedTopic("to", None, 25, 3),),
    routes=(ConnectorRoute("a", "a", "to"), ConnectorRoute("b", "ü", "to")),
    tally=TALLY,
    snapshot_base="/somewhere",
    sample=({"key": '["ü",{}]', "before": None},),
)


DISAGREEMENT = {
    KEEP: (KeyAction.KEEP, "conflict_kept", True),
    NEWEST: (KeyAction.WRITE, "source_taken", True),
    TAKE: (KeyAction.WRITE, "source_taken", True),
    FAIL: (KeyAction.CONFLICT, "undecided", True),
}
DELETION = {
    **DISAGREEMENT,
    NEWEST: (KeyAction.DELETE, "source_taken", True),
    TAKE: (KeyAction.DELETE, "source_taken", True),
}
ABSENT = None


RULES = pytest.mark.parametrize("decide", [decide, decide_by_columns])
RULES_OF_CLAIMS = pytest.mark.parametrize("decide_claims", [decide_claims, decided_by_columns])
Decide = Callable[[Cell | None, Cell | None, Policy], Decision]
DecideClaims = Callable[[list[KeyClaim], Cell | None, Policy], tuple[KeyClaim, Decision]]


@RULES
@pytest.mark.parametrize(
    ("source", "target", "outcome"),
    [
        (Cell(b"1", NEW), ABSENT, dict.fromkeys(Policy, (KeyAction.WRITE, "missing", False))),
        (Cell(None, NEW), ABSENT, dict.fromkeys(Policy, (KeyAction.KEEP, "nothing_to_delete", False))),
        (Cell(b"1", NEW), Cell(b"1", OLD), dict.fromkeys(Policy, (KeyAction.KEEP, "equal", False))),
        (Cell(None, NEW), Cell(None, OLD), dict.fromkeys(Policy, (KeyAction.KEEP, "equal", False))),
        (Cell(b"2", NEW), Cell(b"1", OLD), DISAGREEMENT),
        (Cell(b"1", NEW), Cell(None, OLD), DISAGREEMENT),
        (Cell(None, NEW), Cell(b"1", OLD), DELETION),
    ],
)
def test_decide(
    source: Cell, target: Cell | None, outcome: dict[Policy, tuple[KeyAction, str, bool]], decide: Decide
) -> None:
    for policy, wanted in outcome.items():
        assert decide(source, target, policy) == Decision(*wanted), policy


@RULES
@pytest.mark.parametrize("source_time", [OLD, OLD - 1])
def test_newest_keeps_the_target_unless_the_source_is_later(source_time: int, decide: Decide) -> None:
    decision = decide(Cell(b"2", source_time), Cell(b"1", OLD), NEWEST)
    assert decision == Decision(KeyAction.KEEP, "conflict_kept", conflict=True)


@RULES_OF_CLAIMS
@pytest.mark.parametrize(
    ("policy", "winner"), [(KEEP, b"there"), (TAKE, b"renamed"), (NEWEST, b"renamed"), (FAIL, b"there")]
)
def test_a_rename_that_collides_is_a_conflict(policy: Policy, winner: bytes, decide_claims: DecideClaims) -> None:
    claims = [KeyClaim(Cell(b"there", OLD), False, 0, "new"), KeyClaim(Cell(b"renamed", NEW), True, 0, "old")]
    claim, decision = decide_claims(claims, None, policy)
    assert claim.cell.value == winner
    undecided = Decision(KeyAction.CONFLICT, "rename_collides", conflict=True)
    assert decision == (undecided if policy is FAIL else Decision(KeyAction.WRITE, "missing", conflict=True))
    there = Cell(winner, OLD)
    assert decide_claims(claims, there, policy)[1] == (
        undecided if policy is FAIL else Decision(KeyAction.KEEP, "equal", conflict=True)
    )


@RULES_OF_CLAIMS
@pytest.mark.parametrize("policy", Policy)
@pytest.mark.parametrize(
    ("values", "renamed"), [((b"1", b"1"), (False, True)), ((b"1", b"2"), (False, False)), ((b"1", b"2"), (True, True))]
)
def test_equal_values_and_the_order_of_sources_are_no_collision(
    policy: Policy, values: tuple[bytes, bytes], renamed: tuple[bool, bool], decide_claims: DecideClaims
) -> None:
    """Of two sources the first one counts, as was asked for: nothing is left to decide."""
    claims = [KeyClaim(Cell(values[at], OLD), renamed[at], at, "c") for at in (0, 1)]
    claim, decision = decide_claims(claims, None, policy)
    assert decision == Decision(KeyAction.WRITE, "missing")
    assert decide_claims(claims, claim.cell, policy)[1] == Decision(KeyAction.KEEP, "equal")


@RULES_OF_CLAIMS
@pytest.mark.parametrize("policy", [KEEP, TAKE, FAIL])
def test_the_first_source_wins(policy: Policy, decide_claims: DecideClaims) -> None:
    claims = [KeyClaim(Cell(b"second", NEW), False, 1, "c"), KeyClaim(Cell(b"first", OLD), False, 0, "c")]
    claim, decision = decide_claims(claims, None, policy)
    assert claim.cell.value == b"first"
    assert decision == Decision(KeyAction.WRITE, "missing"), "sources that differ are no collision of names"


@RULES_OF_CLAIMS
@pytest.mark.parametrize("policy", list(Policy))
def test_within_a_source_the_later_record_wins(policy: Policy, decide_claims: DecideClaims) -> None:
    claims = [KeyClaim(Cell(b"old", OLD), False, 0, "c"), KeyClaim(Cell(b"new", NEW), False, 0, "c")]
    assert decide_claims(claims, None, policy)[0].cell.value == b"new"


@pytest.mark.parametrize(
    ("key", "connector", "renamed"),
    [
        (b'["a",{"f":"x"}]', "a", b'["new",{"f":"x"}]'),
        (b'["a",null]', "a", b'["new",null]'),
        (b' [ "a" , {"f" :  1e0} ] ', "a", b' [ "new" , {"f" :  1e0} ] '),
        (b'["a\\"],",{"a":"a"}]', 'a"],', b'["new",{"a":"a"}]'),
        (b'["\\u0061",{"p":"\xc3\xbc"}]', "a", b'["new",{"p":"\xc3\xbc"}]'),
        (b'["\xc3\xbc",{}]', "ü", b'["new",{}]'),
    ],
)
def test_keys_are_renamed_within_their_bytes(key: bytes, connector: str, renamed: bytes) -> None:
    owner = key_owner(key)
    assert owner is not None
    assert owner.connector == connector
    assert renamed_key(key, owner, "new") == renamed


@pytest.mark.parametrize(
    "key",
    [
        None,
        b"",
        b"a",
        b"\xff",
        b'["a"]',
        b'["a",{},1]',
        b"[1,{}]",
        b'["a",[]]',
        b'{"a":1}',
        b'["a",{]',
        b'["a\n",{}]',
        rb'["\ud800",{}]',
    ],
)
def test_keys_that_are_nobodys(key: bytes | None) -> None:
    assert key_owner(key) is None


def test_a_plan_file_gives_the_plan_back() -> None:
    text = plan_file_text(PLAN)
    again = read_plan(text, path="plan.json")
    assert again.digest() == PLAN.digest()
    assert plan_file_text(again) == text
    assert (again.sources, again.targets, again.routes, again.tally) == (PLAN.sources, PLAN.targets, PLAN.routes, TALLY)
    assert again.policy is NEWEST
    document = json.loads(text)
    assert (document["format"], document["version"]) == ("eosctl-offsets-migration", 8), "a change takes a new version"


def test_the_digest_covers_everything() -> None:
    changed = [
        replace(PLAN, cluster_id="other"),
        replace(PLAN, routes=PLAN.routes[:1]),
        replace(PLAN, sample=()),
        replace(PLAN, tally=replace(TALLY, conflicts=0)),
        replace(PLAN, sources=(replace(PLAN.sources[0], topic_id="id2"),)),
    ]
    assert len({plan.digest() for plan in [PLAN, *changed]}) == len(changed) + 1


def _edited(**changes: object) -> str:
    document = json.loads(plan_file_text(PLAN))
    return json.dumps({**document, **changes})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (plan_file_text(PLAN).replace('"connect-offsets"', '"else"'), "changed after it was written"),
        (_edited(version=9), "another format"),
        (_edited(plan={}), "not a plan of `offsets migrate`: it has no 'cluster_id'"),
        (
            _edited(plan={**json.loads(plan_file_text(PLAN))["plan"], "policy": "oldest"}),
            r"its members are not those of a plan \(policy: invalid enum value 'oldest'\)",
        ),
        (_edited(plan={**json.loads(plan_file_text(PLAN))["plan"], "later": 1}), "changed after it was written"),
        ("[]", "not a plan of `offsets migrate`: its members are not those of a plan"),
        ("{", r"not a plan of `offsets migrate`: it is not JSON \(line 1, column 2: Expecting"),
        ("", "not a plan"),
    ],
)
def test_a_file_that_is_not_the_plan(text: str, message: str) -> None:
    """The reason used to be the exception as Python spells it: JSONDecodeError('Expecting value: line 1 …')."""
    with pytest.raises(InputFileError, match=message):
        read_plan(text, path="plan.json")


@pytest.mark.parametrize("lost", ["records", "older", "unowned", "not_selected", "superseded", "keys"])
def test_a_lost_record_is_noticed(lost: str) -> None:
    TALLY.check()
    with pytest.raises(EosctlError, match="do not add up") as caught:
        replace(TALLY, **{lost: getattr(TALLY, lost) + 1}).check()
    assert caught.value.hint
    keys = "4 keys" if lost == "keys" else "3 keys"
    assert caught.value.message.endswith(f"are accounted for; {keys} and 3 actions")


@pytest.mark.parametrize(
    ("selection", "chosen"),
    [
        (Selection(all_connectors=True), ["db-1", "db-2", "file"]),
        (Selection(connectors=("file", "db-1")), ["db-1", "file"]),
        (Selection(pattern="db-*"), ["db-1", "db-2"]),
        (Selection(pattern=r"re:.*\d"), ["db-1", "db-2"]),
        (Selection(pattern="re:db"), NotFoundError),
        (Selection(pattern="re:("), UsageError),
    ],
)
def test_selection(selection: Selection, chosen: list[str] | type[EosctlError]) -> None:
    found = ["file", "db-2", "db-1"]
    if isinstance(chosen, list):
        assert selection.choose(found) == chosen
        return
    with pytest.raises(chosen):
        selection.choose(found)


def test_a_source_without_offsets_is_no_selection_of_all() -> None:
    with pytest.raises(NotFoundError, match="no offsets of any connector") as caught:
        Selection(all_connectors=True).choose([])
    assert "--from" in str(caught.value.hint)


def test_a_connector_without_offsets_is_named() -> None:
    with pytest.raises(NotFoundError, match="of connector gone in") as caught:
        Selection(connectors=("file", "gone")).choose(["file"])
    assert caught.value.hint


@pytest.mark.parametrize("selection", [Selection(), Selection(connectors=("a",), all_connectors=True)])
def test_one_way_of_choosing(selection: Selection) -> None:
    with pytest.raises(UsageError) as caught:
        selection.check()
    assert caught.value.hint


@pytest.mark.parametrize("renames", [{"gone": "x"}, {"a": ""}, {"a": "x\ny"}])
def test_impossible_renames(renames: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        check_renames(renames, ["a", "b"])


def test_two_connectors_are_not_renamed_to_one() -> None:
    with pytest.raises(UsageError, match="one name") as caught:
        check_renames({"a": "x", "b": "x"}, ["a", "b"])
    assert caught.value.hint


def test_routes_follow_the_new_name() -> None:
    routes = plan_routes(["b", "a"], {"b": "c"}, lambda connector: f"offsets-{connector}")
    assert routes == (ConnectorRoute("a", "a", "offsets-a"), ConnectorRoute("b", "c", "offsets-c"))


@pytest.mark.parametrize(
    ("expected", "actual", "found", "status"),
    [
        (b"1", None, False, "missing"),
        (None, None, False, "missing"),
        (b"1", None, True, "deleted"),
        (None, b"2", True, "unexpected"),
        (b"1", b"2", True, "differs"),
    ],
)
def test_how_a_key_is_not_as_it_should_be(
    expected: bytes | None, actual: bytes | None, found: bool, status: str
) -> None:
    assert mismatch(expected, actual, found=found).value == status
