"""YAML that somebody wrote: what is taken, and what is refused in time."""

from __future__ import annotations

import datetime
import itertools

import pytest

from eosctl.core.kept.plan_file import yaml_of
from eosctl.errors import InputFileError

LAUGHS = "a: &a [x]\n" + "".join(
    f"{to}: &{to} [{','.join([f'*{of}'] * 9)}]\n" for of, to in itertools.pairwise("abcdefgh")
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("a: 1\nb: [x, {y: null}]\n", {"a": 1, "b": ["x", {"y": None}]}),
        ("a: &a [1]\nb: *a\n", {"a": [1], "b": [1]}),
        ("a: &a {x: 1}\nb:\n  <<: *a\n  y: 2\n", {"a": {"x": 1}, "b": {"x": 1, "y": 2}}),
        ("a: 1\na: 2\n", {"a": 2}),
        ("a: 2026-11-28\n", {"a": datetime.date(2026, 11, 28)}),
        (f"a: {'[' * 90}{']' * 90}\n", None),
    ],
)
def test_yaml_is_read(text: str, value: object) -> None:
    found = yaml_of(text, source="f")
    assert found == value or value is None


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a: 1\nb: [\n", "f:3"),
        ("a: !!python/none x\n", "f:1"),
        *((f"a: !!{tag} x\n", "f") for tag in ("timestamp", "bool", "int", "float")),
        ('a: !!int ""\n', "f"),
        (f"a: {'9' * 5000}\n", "f"),
        ("a: 2026-99-99\n", "f"),
        ("a: &a [*a]\n", "f"),
        (LAUGHS, "f"),
        ("[" * 20_000, "f"),
        ("- " * 5_000, "f"),
        ("a: 1\n---\na: 2\n", "f:2"),
    ],
)
def test_what_is_no_yaml_or_too_much_of_it_is_an_error_of_the_file(text: str, where: str) -> None:
    """A billion laughs used to hang; `!!timestamp x` was an AttributeError."""
    with pytest.raises(InputFileError) as refused:
        yaml_of(text, source="f", hint="h")
    assert refused.value.message.startswith(f"{where}: not valid YAML: ")
    assert refused.value.hint == "h"


def test_a_key_may_stand_there_once() -> None:
    with pytest.raises(InputFileError, match="f:2: not valid YAML: x stands there twice"):
        yaml_of("a:\n  x: 1\n  x: 2\n", source="f", once=True)
    assert yaml_of("a: {x: 1}\nb: {x: 2}\n", source="f", once=True) == {"a": {"x": 1}, "b": {"x": 2}}
