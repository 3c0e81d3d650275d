"""Every exit code of `eosctl offsets`, reached as a user would reach it: one table, on topics in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from eosctl.core.offsets.names import partition_for
from eosctl.core.transactions import RawGroup
from eosctl.errors import DeadlineError, EosctlError, UnauthorizedError, UnreachableError
from tests.conftest import Invoke, Outcome
from tests.fakes.offset_topics import IN_OWN, WORKER, OffsetWorld

GLOBAL, OWN = "connect-offsets", "own"
A, B = b'["c",{"f":"a"}]', b'["c",{"f":"b"}]'
MERGE = ("merge", "--connector", "c", "--into", "dedicated")
SET = ("set", "--connector", "c", "--partition", '{"f":"a"}', "--offset", '{"n":5}')
RESET = ("reset", "--connector", "c", "--all-partitions")
UNREACHABLE, DENIED = UnreachableError("no broker can be reached"), UnauthorizedError("not authorized", hint="an ACL")


@pytest.fixture
def world() -> OffsetWorld:
    """Connector c, STOPPED, with two offsets that its own topic lacks."""
    world = OffsetWorld()
    world.topics.add_topic(GLOBAL, 5, {"cleanup.policy": "compact"})
    world.topics.add_topic(OWN, 5, {"cleanup.policy": "compact"})
    world.topics.put(GLOBAL, A, b'{"n":1}')
    world.topics.put(GLOBAL, B, b'{"n":2}')
    world.connect.add("c", IN_OWN, state="STOPPED")
    return world


def fails(method: str, error: EosctlError) -> Callable[[OffsetWorld], None]:
    return lambda world: world.topics.fail_next(method, error)


def write_fails(error: EosctlError) -> Callable[[OffsetWorld], None]:
    return lambda world: world.topics.fail_next("record", error, done=True)


def runs(world: OffsetWorld) -> None:
    world.connect.add("c", IN_OWN)


def is_hidden(world: OffsetWorld) -> None:
    world.topics.open_transaction(GLOBAL, partition_for(A, 5))
    world.topics.put(GLOBAL, A, b"{}")


def has_junk(world: OffsetWorld) -> None:
    world.topics.put(GLOBAL, b"junk", b"1")


def is_mistyped(world: OffsetWorld) -> None:
    """There is no group `connect`; the worker is of another one."""
    world.topics.state.groups.clear()


def is_of_consumers(world: OffsetWorld) -> None:
    world.topics.state.groups["connect"] = RawGroup("connect", "Stable", "consumer", "", ())


def is_secret(world: OffsetWorld) -> None:
    world.brokers.calls.fail_always("describe_group", DENIED)


def is_forgotten(world: OffsetWorld) -> None:
    """All workers stopped long ago."""
    world.connect.stop_worker(WORKER)
    world.time.sleep(world.connect.forgotten_after_s)


@dataclass(frozen=True, slots=True)
class Case:
    """A command line, what is the matter, and the exit code."""

    code: int
    words: tuple[str, ...]
    prepare: Callable[[OffsetWorld], None] = lambda _world: None
    yes: bool = True


CASES = [
    Case(0, ("list",)),
    Case(0, MERGE),
    Case(0, (*MERGE, "--dry-run"), yes=False),
    Case(0, ("list",), is_secret),
    Case(0, ("list",), is_forgotten),
    Case(1, ("list", "--connector", "nosuch")),
    Case(1, ("list",), is_mistyped),
    Case(1, ("get", "--connector", "c"), is_of_consumers),
    Case(1, ("diff", "--connector", "c"), is_mistyped),
    Case(1, (*SET, "--workers-down"), is_mistyped),
    Case(1, (*RESET, "--workers-down"), is_mistyped),
    Case(1, ("lint", "--store", "nosuch")),
    Case(1, MERGE, write_fails(EosctlError("the transaction is aborted, nothing was written"))),
    Case(2, ("merge", "--into", "dedicated")),
    Case(2, (*MERGE, "--workers-down"), is_mistyped),  # whether it has a topic of its own is not known
    Case(2, ("import", "/nosuch", "--store", "global")),
    Case(2, ("verify", "/nosuch")),
    Case(3, ("diff", "--connector", "c")),
    Case(3, ("lint",), has_junk),
    Case(4, ("list",), fails("describe", UNREACHABLE)),
    Case(4, ("export", "--store", "global"), fails("stream", DeadlineError("timed out"))),
    Case(4, ("diff", "--connector", "c"), fails("read", UNREACHABLE)),
    Case(5, ("list",), fails("read", DENIED)),
    Case(5, MERGE, write_fails(DENIED)),
    Case(6, MERGE, yes=False),
    Case(6, MERGE, runs),
    Case(6, (*MERGE, "--timeout", "1s"), is_hidden),
    Case(7, MERGE, write_fails(UNREACHABLE)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.code} {' '.join(case.words)}")
def test_exit_code(world: OffsetWorld, invoke: Invoke, case: Case) -> None:
    writes = case.words[0] in ("merge", "import", "set", "reset")
    case.prepare(world)

    def run(*output: str) -> Outcome:
        yes = ("--yes",) if writes and case.yes else ()
        return invoke(*world.flags, "offsets", *case.words, *yes, *output, **world.surroundings)

    done = run("-o", "json") if case.words[0] != "export" else run()
    assert done.exit_code == case.code, done.stderr
    if case.words[0] != "export":
        assert done.json()["exit_code"] == case.code
    if case.code in (4, 5, 6):
        assert world.topics.newest(OWN) == {}
    if case.code not in (0, 3):
        assert done.stderr.strip()


def test_no_code_is_left_out() -> None:
    assert {case.code for case in CASES} == set(range(8))
