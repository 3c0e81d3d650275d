"""Lines of a log, and addresses in configs, fit to be shown."""

from __future__ import annotations

import pytest

from eosctl.core.clients.hidden_secrets import shown_address, shown_line


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


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("jdbc:postgresql://db/orders", "jdbc:postgresql://db…"),
        ("jdbc:postgresql://u:p3w@db:5432,db2:5432/orders?password=p3w", "jdbc:postgresql://***@db:5432,db2:5432…"),
        ("jdbc:postgresql://db/orders?password=a,p3w", "jdbc:postgresql://db…"),
        ("jdbc:sqlserver://db:1433;password=p3w", "jdbc:sqlserver://db:1433…"),
        ("jdbc:db2://db:50000/d:user=u,password=p3w;", "jdbc:db2://db:50000…"),
        ("jdbc:oracle:thin:@//db:1521/x", "jdbc:oracle:thin:@//db:1521…"),
        ("jdbc:oracle:thin:scott/p3w@//db", "***"),
        ("jdbc:mysql://(host=h,user=u,password=p3w)/db", "***"),
        ("mongodb://u:p3/w@h", "***"),
        ("mongodb://u:1/p3w@h", "***"),
        ("mongodb://u:1,p3w@h", "***"),
        ("http://h:1/p3w,http://[::1]:2", "http://h:1…,http://[::1]:2"),
        ("https://p3w@h", "https://***@h"),
        ("h(1414),h2(1414)", "h(1414),h2(1414)"),
        ("a:1,b:2", "a:1,b:2"),
        ("jdbc:sqlite:/data/orders.db", "jdbc:sqlite:/data/orders.db"),
        ("/data/my lines.txt", "/data/my lines.txt"),
        ("${file:/x:url}", "${file:/x:url}"),
        ("u/p3w@h", "***"),
        ("", ""),
    ],
)
def test_of_an_address_only_scheme_host_and_port_are_shown(value: str, shown: str) -> None:
    """Passwords stand wherever a driver wants them: some were printed with the plan of a rehearsal."""
    assert shown_address("connection.url", value) == shown
    assert shown_address("connection.password", value or "x") in {"***", "${file:/x:url}"}
