"""The definition of a connector, as files of several tools have it; nothing that Connect would refuse is passed on."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from eosctl.connectors.definition import ConnectorDefinition, parse_definition, read_definition
from eosctl.errors import InputFileError, UsageError

CONFIG = {"connector.class": "FileStreamSource", "file": "/data/a", "name": "c", "tasks.max": "1"}
STRIMZI = """
apiVersion: kafka.strimzi.io/v1
kind: KafkaConnector
metadata:
  name: c
  labels:
    strimzi.io/cluster: main
spec:
  class: FileStreamSource
  tasksMax: 2
  state: stopped
  config:
    file: /data/a
    tasks.max: 7
    batch.size: 100
    ratio: 0.0001
    whole: 2.0
    "on": false
"""


def parse(text: str, name: str | None = None) -> ConnectorDefinition:
    return parse_definition(text, source="c.json", name=name)


@pytest.mark.parametrize(
    "text",
    [
        '{"name":"c","config":{"connector.class":"FileStreamSource","tasks.max":1,"file":"/data/a"}}',
        '{"name":"c","connector.class":"FileStreamSource","tasks.max":"1","file":"/data/a"}',
        '{"name":"c","config":{"name":"c","connector.class":"FileStreamSource","tasks.max":"1","file":"/data/a"},'
        '"tasks":[{"connector":"c","task":0}],"type":"source"}',
        "name: c\nconfig:\n  connector.class: FileStreamSource\n  tasks.max: 1\n  file: /data/a\n",
        "---\n# a comment\nname: c\nconnector.class: FileStreamSource\ntasks.max: 1\nfile: /data/a\n---\n# none\n",
        '\ufeff{"name":"c","connector.class":"FileStreamSource","tasks.max":1,"file":"/data/a"}'.removeprefix("\ufeff"),
    ],
)
def test_all_shapes_are_one_definition(text: str) -> None:
    found = parse(text)
    assert (found.name, found.config, found.state) == ("c", CONFIG, None)


def test_values_have_the_text_that_connect_makes_of_them() -> None:
    """Jackson takes a number as it is written; a reference of a config provider is none of ours."""
    found = parse(
        '{"name":"c","initial_state":"paused","config":{"connector.class":"X","a":1.10,"b":1e3,"c":true,'
        '"d":"${file:/s:p}","e":12345678901234567890}}'
    )
    kept = {name: found.config[name] for name in "abcde"}
    assert kept == {"a": "1.10", "b": "1e3", "c": "true", "d": "${file:/s:p}", "e": "12345678901234567890"}
    assert found.state == "PAUSED"


def test_a_resource_of_strimzi_is_read_as_its_operator_does() -> None:
    found = parse(STRIMZI)
    assert (found.name, found.state, found.cluster) == ("c", "STOPPED", "main")
    assert found.config == {
        "connector.class": "FileStreamSource",
        "tasks.max": "2",
        "name": "c",
        "file": "/data/a",
        "batch.size": "100",
        "ratio": "1.0E-4",
        "whole": "2",
        "on": "false",
    }


def test_a_number_in_yaml_is_text_as_in_json() -> None:
    """1.10 became 1.1, and 0.0001 what Java prints."""
    found = parse("name: c\nconnector.class: X\na: 1.10\nb: 0.0001\nc: 12345678901234567890\nd: True\ne: '010'\n")
    kept = {name: found.config[name] for name in "abcde"}
    assert kept == {"a": "1.10", "b": "0.0001", "c": "12345678901234567890", "d": "true", "e": "010"}


@pytest.mark.parametrize(
    "value", ["yes", "off", "y", "010", "0o10", "0x10", "12:30", "1_000", "1e3", "+5", ".5", "190:20:30.15"]
)
@pytest.mark.parametrize("place", ["a: {}", "{}: a"])
def test_what_yaml_parsers_read_differently_is_refused(place: str, value: str) -> None:
    """A schedule of 12:30 was sent as 750, and a password of 010 as 8."""
    with pytest.raises(InputFileError, match=r"^c\.json:3: YAML parsers disagree"):
        parse(f"name: c\nconnector.class: X\n{place.format(value)}\n")
    assert parse(f"name: c\nconnector.class: X\na: '{value}'\n").config["a"] == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no connector"),
        ("[]", "holds no connector"),
        ("{", "c.json:1: not valid JSON"),
        ('{"name":"c"}', "has no connector.class"),
        ('{"config":{"connector.class":"X"}}', "has no name"),
        ('{"name":"c","config":{"name":"d","connector.class":"X"}}', "the connector is c, and the name in its config"),
        ('{"name":"c","config":{"connector.class":"X","a":{"b":1}}}', r"config\.a is nested"),
        ('{"name":"c","config":{"connector.class":"X","a":null}}', r"config\.a is null"),
        ('{"name":"c","config":{"connector.class":"X","a":1,"a":2}}', "a stands there twice"),
        ('{"name":"c","connector.class":"X"}{"name":"d","connector.class":"X"}', "more than one document"),
        ("name: c\nconnector.class: X\n---\nname: d\nconnector.class: X\n", "more than one document"),
        ("name: c\nconnector.class: X\na: 1\na: 2\n", "a stands there twice"),
        ("name: c\nconnector.class: X\nsince: 2024-01-01\n", r"since is a date"),
        ("name: c\nconnector.class: X\nlimit: .nan\n", r"limit is a float"),
        ('{"name":"c ","connector.class":"X"}', "begins or ends with a space"),
        ('{"name":"c\\u0007","connector.class":"X"}', "cannot be a connector's name"),
        ('{"name":"c\\ud800","connector.class":"X"}', "half"),
        ('name: c\nconnector.class: X\na: "\\ud800"\n', "half of a surrogate pair"),
        ('{"name":"c","initial_state":"asleep","config":{"connector.class":"X"}}', "is no state"),
        ('{"name":"c","offsets":[],"config":{"connector.class":"X"}}', "offsets is no member"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {}\n", "is a ConfigMap"),
    ],
)
def test_what_is_no_definition_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(InputFileError, match=message):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"name":"c","config":{"connector.class":"X","database.password":["hunter2"]}}',
        "name: c\nconnector.class: X\ndatabase.password: *hunter2\n",
        "name: c\nconnector.class: X\ndatabase.password: !hunter2 x\n",
        "name: c\nconnector.class: X\ndatabase.password: &hunter2 x\nother: &hunter2 x\n- hunter2\n",
    ],
)
def test_a_value_is_in_no_message(text: str) -> None:
    with pytest.raises(InputFileError) as refused:
        parse(text)
    assert "hunter2" not in f"{refused.value.message} {refused.value.hint}"


def test_a_definition_gets_another_name_and_settings() -> None:
    found = parse('{"name":"c","connector.class":"X","a":"1"}').changed(name="d", settings=["a=2", "b=x=y", "e="])
    assert (found.name, found.config) == (
        "d",
        {"name": "d", "connector.class": "X", "a": "2", "b": "x=y", "e": ""},
    )
    for wrong in ("a", "=x", "name=e", "database.password=hunter2"):
        with pytest.raises(UsageError):
            found.changed(settings=[wrong])


def test_a_name_may_come_from_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text('{"connector.class":"X"}', encoding="utf-8")
    assert read_definition(str(path), stdin=io.BytesIO(), name="c").name == "c"
    assert read_definition("-", stdin=io.BytesIO(b"connector.class: X\nname: d"), name="e").name == "e"


@pytest.mark.parametrize("content", [b"\xff\xfe", b" " * (1 << 20) + b"{}"])
def test_a_file_that_can_be_no_definition_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "c.json"
    path.write_bytes(content)
    with pytest.raises(InputFileError):
        read_definition(str(path), stdin=io.BytesIO())
    with pytest.raises(InputFileError):
        read_definition(str(tmp_path / "none.json"), stdin=io.BytesIO())
