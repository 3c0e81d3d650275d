"""docs/failures.md is the dictionary: made from the table by `--update-golden`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from eosctl.failures.failure import Failure, Family, Sign, filled_in
from eosctl.failures.rules import FAILURES

PAGE = Path(__file__).parents[2] / "docs" / "failures.md"
HEAD = """\
# Failures of transactions, and of what else stops Connect

What `eosctl explain` says of a stack trace, a log, or the name of an exception, in one page. Made from the table of
failures by `pytest --update-golden tests/failures/test_failures_page.py`.
"""
TITLES = {
    Family.CONNECT: "Kafka Connect",
    Family.PRODUCER: "Producers",
    Family.COORDINATOR: "Coordinators and rights",
    Family.STREAMS: "Kafka Streams",
    Family.FLINK: "Flink",
    Family.READER: "Readers",
    Family.BROKER: "Brokers and connections",
}


def page() -> str:
    lines = [HEAD]
    for family, title in TITLES.items():
        own = [each for each in FAILURES if each.family is family]
        lines += [f"* **{title}**: " + ", ".join(f"[{each.code}](#{each.code})" for each in own)]
    for family, title in TITLES.items():
        lines += ["", f"## {title}"]
        for each in FAILURES:
            if each.family is family:
                lines += ["", *entry(each)]
    return "\n".join(lines) + "\n"


def entry(each: Failure) -> Iterator[str]:
    yield f'<a id="{each.code}"></a>'
    yield f"### {each.code}"
    yield ""
    yield f"**{each.name}**. {each.code.meaning}"
    if not each.of_transactions:
        yield "It is no failure of a transaction."
    if each.aliases:
        yield f"Also known as: {', '.join(each.aliases)}."
    yield ""
    yield "Why, the most likely first:"
    yield from (f"{number}. {cause}" for number, cause in enumerate(each.causes, 1))
    special = [sign for sign in each.signs if sign.means or sign.causes or sign.fix]
    if special:
        yield from ("", "More precisely, where the text has these words:", *map(_special, special))
    if each.is_not:
        yield from ("", "What it is not:", *(f"* {words}" for words in each.is_not))
    yield from ("", f"What to do: {filled_in(each.fix, {}).rstrip('.')}.")
    if each.commands:
        yield from ("", "See:", *(f"* `{filled_in(command, {})}`" for command in each.commands))
    if each.versions:
        yield from ("", "Versions of Kafka:", *(f"* {note.versions}: {note.words}." for note in each.versions))
    yield from ("", "Said by:", *(f"* {words}" for words in each.said_by))


def _special(sign: Sign) -> str:
    words = " and ".join(f'"{text.rstrip()}"' for text in sign.texts)
    parts = [sign.means, *(cause.rstrip(".") for cause in sign.causes)]
    fix = f" What to do: {filled_in(sign.fix, {}).rstrip('.')}." if sign.fix else ""
    return f"* {words}: {'. '.join(part for part in parts if part)}.{fix}"


def test_the_page_is_the_table(pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page()


def test_each_entry_has_an_anchor() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [each.code for each in FAILURES if text.count(f'<a id="{each.code}"></a>') != 1] == []
    assert [each.code for each in FAILURES if f"(#{each.code})" not in text] == []
