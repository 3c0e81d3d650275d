"""The screens of a watch, at every size: nothing is wider or longer than the terminal, nothing steers it."""

from __future__ import annotations

import pytest

from eosctl.checks import codes
from eosctl.core.findings import ERROR, INFO, Finding
from eosctl.output import screen as keys
from eosctl.output.screen import ScreenRow, width_of
from eosctl.watch.display import WatchView, follow_lines, press_key, render
from eosctl.watch.layout import Heading, Size
from eosctl.watch.rules import SourceLook, WatchState, next_state

HEADING = Heading("group g: 3 of 3 workers enabled; 12 source tasks, exactly-once", "01:02:03Z")
HANGING = Finding(
    codes.HANGING_TRANSACTION, ERROR, "orders-0",
    "orders-0 has a hanging transaction since offset 12 (no coordinator knows it): readers wait behind it",
    "`eosctl txn abort --topic orders --partition 0 --start-offset 12`", {"start_offset": 12},
)  # fmt: skip
SIZES = [Size(columns, rows) for columns in (20, 80, 109, 110, 160, 300) for rows in (1, 4, 10, 50)]


def of(*findings: Finding, at_s: float = 90.0, **more: object) -> WatchState:
    looks = [SourceLook("kafka", 95.0), SourceLook("doctor", at_s, list(findings), **more)]  # type: ignore[arg-type]
    return next_state(WatchState(), looks, 95, strict=False)


def screen(watch: WatchState, size: Size, *pressed_keys: str, heading: Heading = HEADING) -> list[str]:
    view = WatchView()
    for key in pressed_keys:
        view = press_key(follow_lines(view, watch), key, watch)
    rows = rows_of(view, watch, size, heading)
    return [row.text.rstrip() for row in rows]


def rows_of(view: WatchView, watch: WatchState, size: Size, heading: Heading = HEADING) -> list[ScreenRow]:
    return render(view, watch, heading, size=size, now_s=100.0)[1]


def odd(number: int) -> Finding:
    """A subject with wide characters, a newline and an escape sequence."""
    name = f"日本語-{number}\n\x1b[2J\x1b]0;owned\x07‮e\u0301"
    return Finding(
        codes.HANGING_TRANSACTION, ERROR, name, f"{name} hangs {'x' * 300}", f"`eosctl fence '{name}{number}'`",
        {"n": name},
    )  # fmt: skip


@pytest.mark.parametrize("shown", [(), (keys.CHOOSE,), (keys.HELP,), (keys.LAST,), (keys.CHOOSE, keys.LAST)])
@pytest.mark.parametrize("count", [0, 1, 7, 60])
def test_every_screen_fits_and_steers_nothing(shown: tuple[str, ...], count: int) -> None:
    watch = of(*map(odd, range(count)))
    view = WatchView()
    for key in shown:
        view = press_key(follow_lines(view, watch), key, watch)
    for size in SIZES:
        rows = rows_of(view, watch, size)
        assert len(rows) == size.rows
        for row in rows:
            assert width_of(row.text) <= size.columns, row.text
            assert row.text.isprintable(), row.text
        if count and size.columns >= 40 and size.rows >= 10 and keys.HELP not in shown:
            assert any("日本語" in row.text for row in rows), "no screen is blank"


def test_the_table_at_80_columns_has_the_command_below() -> None:
    assert screen(of(HANGING), Size(80, 8)) == [
        "group g: 3 of 3 workers enabled; 12 source tasks, exactly-once         01:02:03Z",
        "1 error  oldest fact: 10s",
        "  SEVERITY    FOR    AGE  WHAT",
        "> error        5s    10s  orders-0 has a hanging transaction since offset 12 (n…",
        "     fix: eosctl txn abort --topic orders --partition 0 --start-offset 12",
        "",
        "",
        "j/k choose  Enter details  ? help  q quit",
    ]


def test_what_stands_for_many_has_its_code_at_80_columns() -> None:
    """It began with "56 places: 56 times, the first 3 are", and the reason was cut off."""
    told = "56 places: shop-orders-000/3 is FAILED; shop-orders-009/3 is FAILED; and 54 more"
    many = Finding(codes.HANGING_TRANSACTION, ERROR, "56 places", told, "", {"subjects": ["shop-orders-000/3"]})
    row = screen(of(many), Size(80, 8))[3]
    assert row == "> error        5s    10s  hanging_transaction: 56 places: shop-orders-000/3 is…"


def test_the_table_at_120_columns_has_the_code_and_the_subject() -> None:
    rows = screen(of(HANGING), Size(120, 7))
    assert rows[2] == "  SEVERITY    FOR    AGE  SUBJECT   WHAT"
    assert rows[3].startswith(
        "> error        5s    10s  orders-0  hanging_transaction: orders-0 has a hanging transaction"
    )
    assert rows[4].strip() == "fix: eosctl txn abort --topic orders --partition 0 --start-offset 12"


def test_the_table_at_200_columns_has_the_command_beside() -> None:
    rows = screen(of(HANGING), Size(200, 6))
    assert rows[2].split() == ["SEVERITY", "FOR", "AGE", "SUBJECT", "WHAT", "COMMAND"]
    assert rows[3].endswith("eosctl txn abort --topic orders --partition 0 --start-offset 12")
    assert not rows[4]


def test_a_line_in_full_has_what_explain_says_and_a_command_that_can_be_copied_whole() -> None:
    rows = rows_of(
        press_key(follow_lines(WatchView(), of(HANGING)), keys.CHOOSE, of(HANGING)), of(HANGING), Size(40, 40)
    )
    texts = [row.text.rstrip() for row in rows]
    assert texts[:2] == ["error     hanging_transaction  orders-0", "seen for 5s; doctor was last collected…"]
    at = texts.index("eosctl txn abort --topic orders --partit")
    assert texts[at + 1] == "ion 0 --start-offset 12"
    assert [row.flows for row in rows[at : at + 2]] == [True, False], "one line for whoever copies it"
    told = " ".join(texts)
    assert codes.HANGING_TRANSACTION.meaning[:20] in told
    assert "start_offset: 12" in texts
    assert texts[-1].startswith("j/k scroll  Esc back  q quit")


def test_before_anything_is_collected_the_screen_says_so() -> None:
    watch = next_state(WatchState(), [SourceLook("kafka", None), SourceLook("doctor", None)], 0, strict=False)
    rows = screen(watch, Size(80, 8), heading=Heading("group g", "01:02:03Z"))
    assert rows[1] == "Nothing is known to be wrong.  not collected yet: kafka, doctor"
    assert rows[3:5] == ["  kafka   not collected yet", "  doctor  not collected yet"]


def test_a_source_that_fails_is_no_blank_screen_and_no_calm() -> None:
    rows = screen(of(error="not_authorized", message="no DESCRIBE on the cluster"), Size(80, 8))
    assert rows[1].startswith("Nothing is known to be wrong.")
    assert rows[4] == "  doctor  collected 10s ago  not_authorized: no DESCRIBE on the cluster"
    assert screen(of(), Size(80, 8))[1] == "Nothing is wrong.  oldest fact: 10s"


def test_a_wait_says_how_far_it_is() -> None:
    heading = Heading("group g", "01:02:03Z", "calm for 12s of 2m")
    assert screen(of(), Size(80, 5), heading=heading)[1].endswith("  calm for 12s of 2m")


def test_what_is_gone_says_so_below_the_rest() -> None:
    watch = next_state(of(HANGING), [SourceLook("kafka", 95.0), SourceLook("doctor", 98.0)], 98, strict=False)
    assert screen(watch, Size(80, 8))[3].startswith("> gone         2s    10s  orders-0 has a hanging")


def info(number: int) -> Finding:
    return Finding(codes.ACLS_NOT_CHECKED, INFO, f"s{number}", f"s{number} is odd", f"Nothing, of {number}.")


def test_what_only_informs_is_counted_in_plain_words() -> None:
    """It was "2 infos"."""
    assert screen(of(HANGING, info(1), info(2)), Size(80, 8))[1].startswith("1 error, 2 for information  oldest")


def test_the_chosen_line_stays_chosen_while_others_come() -> None:
    watch = of(info(1), info(2), info(3))
    view = press_key(press_key(follow_lines(WatchView(), watch), keys.DOWN, watch), keys.DOWN, watch)
    more = of(HANGING, info(0), info(1), info(2), info(3))
    view = follow_lines(view, more)
    [chosen] = [row.text.rstrip() for row in rows_of(view, more, Size(80, 20)) if row.text.startswith("> ")]
    assert chosen.endswith("s3 is odd")
    view = follow_lines(view, of(info(1)))
    assert view.position == 0


def test_a_line_that_went_is_still_shown_in_full() -> None:
    watch = of(HANGING)
    view = press_key(follow_lines(WatchView(), watch), keys.CHOOSE, watch)
    nothing = next_state(watch, [SourceLook("doctor", 99.0)], 99, strict=False)
    view = follow_lines(view, nothing)
    assert rows_of(view, nothing, Size(80, 20))[1].text.startswith("seen for 5s; gone for 1s; doctor was last")


def test_scrolling_goes_as_far_as_there_is() -> None:
    watch, size = of(*map(odd, range(500))), Size(80, 10)
    last = screen(watch, size, keys.LAST)
    assert last[-1].endswith("498-500 of 500")
    assert "日本語-499" in last[-3]
    view = press_key(follow_lines(WatchView(), watch), keys.CHOOSE, watch)
    view = render(press_key(view, keys.LAST, watch), watch, HEADING, size=size, now_s=100.0)[0]
    assert view.scrolled < 100, "one step up is seen at once"


@pytest.mark.parametrize(
    ("steps", "shows"),
    [
        ([keys.HELP], "Keys"),
        ([keys.HELP, keys.HELP], "group g"),
        ([keys.HELP, keys.BACK], "group g"),
        ([keys.CHOOSE], "error     hanging_transaction"),
        ([keys.CHOOSE, keys.CHOOSE], "group g"),
        ([keys.CHOOSE, keys.BACK], "group g"),
        ([keys.UP, keys.PAGE_UP, keys.DOWN, keys.PAGE_DOWN, keys.FIRST], "group g"),
    ],
)
def test_keys(steps: list[str], shows: str) -> None:
    assert screen(of(HANGING), Size(80, 24), *steps)[0].startswith(shows)
