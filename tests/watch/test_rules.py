"""The lines of a watch: which come first, what counts as a change, and what is calm."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from eosctl.checks import codes
from eosctl.codes import finding as declare
from eosctl.core.findings import ERROR, INFO, WARNING, Finding
from eosctl.foreign import Lines
from eosctl.offsets.codes import OFFSETS_WENT_BACK
from eosctl.watch.rules import GONE_FOR_S, SourceLook, WatchState, changes, command_of, next_state

ODD = declare("odd", "Something is odd.")


def a_finding(
    subject: str = "a", *, severity: str = ERROR, message: str = "a is odd", fix: str = "", **more: object
) -> Finding:
    return Finding(ODD, severity, subject, message, fix, more)


def look(*findings: Finding, at_s: float = 0.0, name: str = "doctor", **more: object) -> SourceLook:
    return SourceLook(name, at_s, list(findings), **more)  # type: ignore[arg-type]


def after(*steps: tuple[float, Sequence[SourceLook]], strict: bool = False) -> list[tuple[WatchState, list[str]]]:
    """Each step's lines, and what changed at it."""
    now, seen = WatchState(), []
    for at_s, looks in steps:
        then = next_state(now, looks, at_s, strict=strict)
        seen.append((then, [f"{each.word} {each.line.finding.subject}" for each in changes(now, then)]))
        now = then
    return seen


def test_worst_come_first_and_stay_in_the_order_of_doctor() -> None:
    lost = Finding(OFFSETS_WENT_BACK, ERROR, "lost", "lost went back", "")
    found = [a_finding("i", severity=INFO), a_finding("e1"), a_finding("w", severity=WARNING), a_finding("e2"), lost]
    [(once, _), (twice, changed)] = after((0, [look(*found)]), (9, [look(*reversed(found), at_s=9)]))
    assert [line.finding.subject for line in once.lines] == ["lost", "e1", "e2", "w", "i"]
    assert [line.finding.subject for line in twice.lines] == ["lost", "e2", "e1", "w", "i"]
    assert not changed


@pytest.mark.parametrize(
    ("before", "later", "words"),
    [
        ([], [a_finding()], ["appeared a"]),
        ([a_finding()], [], ["gone a"]),
        ([a_finding(message="open for 12 s at 1,000")], [a_finding(message="open for 27 s at 1,044")], []),
        ([a_finding(age_ms=1)], [a_finding(age_ms=2)], []),
        ([a_finding(severity=WARNING)], [a_finding()], ["changed a"]),
        ([a_finding(message="2 are slow")], [a_finding(message="2 are dead")], ["changed a"]),
        ([a_finding(subjects=["x"])], [a_finding(subjects=["x", "y"])], ["changed a"]),
        ([a_finding(fix="`eosctl fence a`")], [a_finding(fix="`eosctl fence b`")], ["changed a"]),
        ([a_finding(), a_finding(message="other")], [a_finding()], ["gone a"]),
        ([a_finding("b"), a_finding("a")], [a_finding("c"), a_finding("a")], ["appeared c", "gone b"]),
    ],
)
def test_what_is_a_change(before: list[Finding], later: list[Finding], words: list[str]) -> None:
    assert after((0, [look(*before)]), (5, [look(*later, at_s=5)]))[1][1] == words


def test_a_line_keeps_its_beginning_and_takes_the_age_of_its_source() -> None:
    (_, _), (then, _) = after((10, [look(a_finding(), at_s=9)]), (40, [look(a_finding(), at_s=38)]))
    assert [(line.since_s, line.looked_s) for line in then.lines] == [(10, 38)]


def test_what_is_gone_stays_for_a_minute_and_goes_from_there_when_it_is_back() -> None:
    steps = after(
        (0, [look(a_finding())]), (5, [look()]), (6, [look()]), (7, [look(a_finding())]), (8, [look()]),
        (8 + GONE_FOR_S, [look()]),
    )  # fmt: skip
    assert [len(then.gone) for then, _ in steps] == [0, 1, 1, 0, 1, 0]
    assert [words for _, words in steps] == [["appeared a"], ["gone a"], [], ["appeared a"], ["gone a"], []]


def test_a_source_that_knows_better_supersedes_the_older_findings_of_another() -> None:
    """doctor's look of a minute ago kept a transaction on the screen that somebody had just aborted."""
    hanging = Finding(codes.HANGING_TRANSACTION, ERROR, "t-0", "t-0 hangs", "")
    owns = frozenset({codes.HANGING_TRANSACTION})
    old, new = look(hanging, at_s=1), look(at_s=50, name="hanging", owns=owns)
    assert not next_state(WatchState(), [new, old], 51, strict=False).lines
    newer = look(hanging, at_s=55)
    assert len(next_state(WatchState(), [new, newer], 56, strict=False).lines) == 1
    failing = look(at_s=50, name="hanging", owns=owns, error="unreachable")
    assert len(next_state(WatchState(), [failing, old], 51, strict=False).lines) == 1, "it does not know better now"


@pytest.mark.parametrize(
    ("looks", "strict", "state"),
    [
        ([], False, "unknown"),
        ([look()], False, "calm"),
        ([look(a_finding())], False, "finding"),
        ([look(a_finding(severity=WARNING))], False, "calm"),
        ([look(a_finding(severity=WARNING))], True, "finding"),
        ([look(a_finding(severity=INFO))], True, "calm"),
        ([look(), SourceLook("group", None)], False, "unknown"),
        ([look(), look(name="group", error="timed_out")], False, "unknown"),
        ([look(), look(name="group", is_stale=True)], False, "unknown"),
        ([look(a_finding()), look(name="group", error="timed_out")], False, "finding"),
    ],
)
def test_calm_is_what_is_known_of_every_source(looks: list[SourceLook], strict: bool, state: str) -> None:
    assert next_state(WatchState(), looks, 1, strict=strict).state == state


def test_a_state_lasts_from_its_first_look_and_begins_anew_after_an_interruption() -> None:
    steps = after((10, [look()]), (20, [look()]), (30, [look(a_finding())]), (40, [look()]), (50, [look()]))
    assert [then.state_since_s for then, _ in steps] == [10, 10, 30, 40, 40]


@pytest.mark.parametrize(
    ("fix", "command"),
    [
        ("`eosctl txn abort --topic t --partition 0`", "eosctl txn abort --topic t --partition 0"),
        ("See `eosctl txn describe x`. `eosctl fence x` aborts it now.", "eosctl fence x"),
        ("See `eosctl txn describe x` and the log.", "eosctl txn describe x"),
        (Lines.of("`eosctl acls apply --all` grants it; or:", "kafka-acls.sh --add"), "eosctl acls apply --all"),
        (Lines.of("Grant it:", "kafka-acls.sh --add --topic t"), "kafka-acls.sh --add --topic t"),
        ("Nothing, if that is meant; `eosctl connectors resume c` starts it again.",
         "Nothing, if that is meant; `eosctl connectors resume c` starts it again."),
        ("Start broker 2.", "Start broker 2."),
        ("Set `retries=1`.", "Set `retries=1`."),
        ("Install it; `eosctl rehearse --plugin-path DIR` tries it.",
         "Install it; `eosctl rehearse --plugin-path DIR` tries it."),
        ("`eosctl audit --connector c --sequence FIELD` proves it, `eosctl connectors stop c` ends it.",
         "eosctl connectors stop c"),
    ],
)  # fmt: skip
def test_the_command_of_a_fix(fix: str, command: str) -> None:
    assert command_of(fix) == command


def idle(*numbers: int) -> list[Finding]:
    return [a_finding(f"c{number:02}/0", severity=WARNING, fix="Nothing.") for number in numbers]


def test_findings_that_are_shown_as_one_keep_their_own_time() -> None:
    """The line of five was named by their number: a sixth made it another one, that had just appeared."""
    numbers = [range(5), range(6), range(5), range(3), range(4), range(5)]
    steps = after(*((15.0 * at, [look(*idle(*each))]) for at, each in enumerate(numbers)))
    assert [words for _, words in steps] == [
        ["appeared 5 places"], ["appeared c05/0"], ["gone c05/0"], ["gone c03/0", "gone c04/0"], ["appeared c03/0"],
        ["appeared c04/0"],
    ]  # fmt: skip
    assert [[line.since_s for line in then.lines] for then, _ in steps] == [[0], [0], [0], [0, 0, 0], [0], [0]]


def test_of_two_alike_the_one_that_stays_is_itself() -> None:
    """They were told apart by their order: when the first went, the second became it, and went."""
    one, other = (a_finding(message=f"a sets {name}", fix="Rename it.", property=name) for name in ("x", "y"))
    (_, _), (then, words), (_, back) = after((0, [look(one, other)]), (60, [look(other)]), (90, [look(other, one)]))
    assert ([(line.finding.message, line.since_s) for line in then.lines], words) == ([("a sets y", 0)], ["gone a"])
    assert back == ["appeared a"]


@pytest.mark.parametrize(
    ("found", "unseen", "state"),
    [
        (Finding(ODD, WARNING, "a", "a is not known", "", certain=False), 0, "unknown"),
        (Finding(ODD, INFO, "a", "a was not asked for", "", certain=False), 0, "calm"),
        (Finding(ODD, WARNING, "a", "a is odd", ""), 0, "calm"),
        (Finding(ODD, WARNING, "a", "a is odd", ""), 1, "unknown"),
        (Finding(ODD, ERROR, "a", "a is odd", "", certain=False), 1, "finding"),
    ],
)
def test_what_could_not_be_seen_is_no_calm(found: Finding, unseen: int, state: str) -> None:
    """`--until calm` ended with 0 though the heading said that whether tasks are exactly-once is not known."""
    assert next_state(WatchState(), [look(found, unseen=unseen)], 1, strict=False).state == state
