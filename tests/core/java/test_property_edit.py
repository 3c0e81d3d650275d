"""Changing one setting of a .properties file: Java reads the new value, and every other character stays."""

from __future__ import annotations

import random

import pytest

from eosctl.core.java.properties import ENCODING, parse_properties, set_property

NAME = "exactly.once.source.support"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{NAME}=disabled\n", f"{NAME}=enabled\n"),
        (f"a=1\n{NAME}=disabled\nb=2\n", f"a=1\n{NAME}=enabled\nb=2\n"),
        (f"  {NAME} : disabled  \n", f"  {NAME} : enabled\n"),
        (f"{NAME}\tdisabled", f"{NAME}\tenabled"),
        (f"# {NAME}=preparing\r\n{NAME}=disabled\r\nz=1\r\n", f"# {NAME}=preparing\r\n{NAME}=enabled\r\nz=1\r\n"),
        # of two the last is the one that Java goes by
        (f"{NAME}=preparing\n{NAME}=disabled\n", f"{NAME}=preparing\n{NAME}=enabled\n"),
        (f"{NAME}=enabled\n{NAME}=disabled\n#end", f"{NAME}=enabled\n{NAME}=enabled\n#end"),
        # the value, or the key, goes on in the next line
        (f"{NAME}=dis\\\n   abled\nb=2\n", f"{NAME}=enabled\nb=2\n"),
        (f"{NAME}=\\\n   disabled\nb=2\n", f"{NAME}=\\\n   enabled\nb=2\n"),
        ("exactly.once.\\\n  source.support=disabled\nb=2\n", "exactly.once.\\\n  source.support=enabled\nb=2\n"),
        # there is neither a value nor what stands before one
        (f"{NAME}\nb=2\n", f"{NAME}=enabled\nb=2\n"),
        (f"{NAME}\\\r\n", f"{NAME}\\\r\n=enabled"),
        (f"{NAME}=dis\\", f"{NAME}=enabled"),
        # inside another value it is no setting
        (f"a=x \\\n{NAME}=disabled\nb=2\n", f"a=x \\\n{NAME}=disabled\nb=2\n{NAME}=enabled\n"),
        # not there: added, on a line of its own
        ("", f"{NAME}=enabled\n"),
        ("a=1", f"a=1\n{NAME}=enabled\n"),
        ("a=1\r\n", f"a=1\r\n{NAME}=enabled\r\n"),
        ("a=1\\", f"a=1\\\n\n{NAME}=enabled\n"),
        ("a=1\\\n", f"a=1\\\n\n{NAME}=enabled\n"),
        # there already
        (f"{NAME}  enabled\n", f"{NAME}  enabled\n"),
        ("exactly\\u002eonce.source.support=disabled\n", "exactly\\u002eonce.source.support=enabled\n"),
    ],
)
def test_one_setting_changes(before: str, after: str) -> None:
    assert set_property(before, NAME, "enabled") == after
    assert parse_properties(after, source="f").values[NAME] == "enabled"
    assert set_property(after, NAME, "enabled") == after


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a\\\n b:c", {"ab": "c"}),
        ("a \\\n\t= \\\r\n b\\\r\rd", {"a": "b", "d": ""}),
        ("a=\\u00\\\n41\\ud83d\\ude00", {"a": "A\U0001f600"}),
        # before a setting has begun, a backslash that ends a line joins nothing
        ("\\\n#a=b\nc=d", {"c": "d"}),
        (" \\\r\n\f\n!a\\\nc=d", {"c": "d"}),
        ("\\\n = b", {"": "b"}),
        ("a=b\\\n#c", {"a": "b#c"}),
    ],
)
def test_settings_are_those_of_java(text: str, values: dict[str, str]) -> None:
    """What Java 17 reads: behind a line of nothing but a backslash, a comment was a setting, and an empty line too."""
    assert parse_properties(text, source="f").values == values


def test_many_lines_of_one_setting_are_read_in_linear_time() -> None:
    text = "a=\\\n" + "b\\\n" * 300_000
    assert parse_properties(text, source="f").values == {"a": "b" * 300_000}


def test_whatever_the_file_nothing_else_changes() -> None:
    """Files made at random from the pieces that make this syntax hard."""
    pieces = [NAME, "=", ":", " ", "\t", "\\", "\\\n", "\n", "\r\n", "\r", "#", "!", "a", "enabled", "\\\\", "é", "key"]
    dice = random.Random(618)  # noqa: S311 - the same files every time
    for _round in range(5000):
        text = "".join(dice.choice(pieces) for _ in range(dice.randrange(14)))
        before = dict(parse_properties(text, source="f").values)
        edited = set_property(text, NAME, "preparing")
        assert dict(parse_properties(edited, source="f").values) == {**before, NAME: "preparing"}, repr(text)


def test_every_byte_survives() -> None:
    text = bytes(range(1, 256)).replace(b"\\", b"").decode(ENCODING)
    assert set_property(text, NAME, "enabled").encode(ENCODING).startswith(text.encode(ENCODING))


def test_what_would_need_escapes_is_no_value() -> None:
    with pytest.raises(ValueError, match="escapes"):
        set_property("", NAME, "a\nb")
