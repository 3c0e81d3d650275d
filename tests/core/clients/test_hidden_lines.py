"""Lines of a log, fit to be shown."""

from __future__ import annotations

import pytest

from eosctl.core.clients.hidden_secrets import shown_line


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("group.id=g", "group.id=g"),
        ("Invalid token: expired", "Invalid token: expired"),
        ("a=b, db.password=x y", "a=b, db.password=***"),
        ("sasl.jaas.config = x required password=p;", "sasl.jaas.config = ***"),
        ('{"level": "info", "password": "x"}', '{"level": "info", "password": ***'),
        ("to https://me:pw@host/x", "to https://***@host/x"),
        ("AWS_SECRET_ACCESS_KEY=x", "AWS_SECRET_ACCESS_KEY=***"),
    ],
)
def test_what_stands_behind_the_name_of_a_secret_is_left_out(line: str, shown: str) -> None:
    assert shown_line(line) == shown
