"""sasl.jaas.config as Kafka's JaasConfig reads it; the expected values are what Kafka 4.3.1 made of the same lines."""

from __future__ import annotations

import pytest

from eosctl.core.java.keystores import parse_jaas


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ('M required a="b";', {"a": "b"}),
        ("M required a='b\"c' d=\"e'f\";", {"a": 'b"c', "d": "e'f"}),
        ("M required username='u'\n  password='p'\n;", {"username": "u", "password": "p"}),
        ('M required a="b" // a note = "x";\n c="d";', {"a": "b", "c": "d"}),
        ('M required /* x="y"; */ a="b"; // end', {"a": "b"}),
        ('M required / a single slash is a comment, too\n a="b";', {"a": "b"}),
        (r'M required a="\101\477\t\q\\\"";', {"a": "A'7\tq\\\""}),
        ('M required a="http://x/*y";', {"a": "http://x/*y"}),
        ("M required a=b-c_d$.e1;", {"a": "b-c_d$.e1"}),
        ('M required "a b"=é;', {"a b": "é"}),
        ('M REQUISITE a="";', {"a": ""}),
        ("M optional;", {}),
    ],
)
def test_options(line: str, options: dict[str, str]) -> None:
    """Single quotes were taken for a part of the value, escapes as they stand, and comments refused."""
    module = parse_jaas(line)
    assert (module.name, module.options) == ("M", options)


def test_the_class_is_told_without_its_package() -> None:
    assert parse_jaas("org.apache.kafka.common.security.plain.PlainLoginModule required;").name == "PlainLoginModule"


@pytest.mark.parametrize(
    "line",
    [
        *("", "Module", "Module required", "M required a=s3cret", "M required a s3cret;", 'M required a="s3cret;'),
        *(
            "M required =s3cret;",
            'M wanted a="s3cret";',
            'M required a="s3cret\n";',
            'M required a="s3cret"; N required;',
        ),
        *("M required a=12;", "M required a=-s3cret;", "M required a=s3@cret;", 'M required # a="s3cret";'),
        *("M required a==s3cret;", 'M required a="s3cret";;'),
    ],
)
def test_what_kafka_refuses_is_refused_and_never_shown(line: str) -> None:
    with pytest.raises(ValueError, match=r"must|quote") as caught:
        parse_jaas(line)
    assert "cret" not in str(caught.value)
