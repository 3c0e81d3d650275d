"""What a validation and a worker's file prove of its mode."""

from __future__ import annotations

import pytest

from eosctl.core.workers.modes import Mode
from eosctl.group.modes import (
    WorkerFileSettings,
    files_of,
    is_standalone,
    mode_of_validation,
    probe_config,
    probe_plugins,
    read_worker_file,
    refine_mode,
)

OBJECTION = "This worker does not have exactly-once source support enabled."
NOT_IMPLEMENTED = "The connector does not implement the API required for preflight validation of exactly-once"
FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
MIRROR_SOURCE = "org.apache.kafka.connect.mirror.MirrorSourceConnector"


def _answer(value: object, *errors: str, name: str = "exactly.once.support") -> dict[str, object]:
    other = {"value": {"name": "topic", "value": None, "errors": ["Missing required configuration"]}}
    mine = {"value": {"name": name, "value": value, "errors": list(errors)}}
    return {"error_count": 1 + len(errors), "configs": [other, mine]}


@pytest.mark.parametrize(
    ("answer", "mode"),
    [
        (_answer("required"), Mode.ENABLED),
        (_answer("required", NOT_IMPLEMENTED), Mode.ENABLED),
        (_answer("required", OBJECTION), Mode.NOT_ENABLED),
        (_answer("required", OBJECTION, NOT_IMPLEMENTED), Mode.NOT_ENABLED),
        (_answer("required", name="other"), Mode.UNKNOWN),
        ({}, Mode.UNKNOWN),
        ({"configs": [None, {"value": 3}]}, Mode.UNKNOWN),
    ],
)
def test_mode_of_validation(answer: dict[str, object], mode: Mode) -> None:
    assert mode_of_validation(answer) is mode


def test_a_connector_that_replaces_the_workers_verdict_proves_nothing() -> None:
    """MirrorSourceConnector of a preparing worker (4.3.1) answers so: without errors of the worker."""
    errors = "MirrorSourceConnector can only provide exactly-once guarantees when its source consumer is configured"
    assert mode_of_validation(_answer(None, errors)) is Mode.UNKNOWN


def test_the_probe_of_a_file_source_is_complete() -> None:
    """Without a topic its own check fails, and workers logged an ERROR with a stack trace at each look."""
    asked = {"name": "eosctl-probe", "tasks.max": "1", "exactly.once.support": "required"}
    assert probe_config("com.acme.Jdbc") == {**asked, "connector.class": "com.acme.Jdbc"}
    assert probe_config(FILE_SOURCE) == {**asked, "connector.class": FILE_SOURCE, "topic": "eosctl-probe"}


@pytest.mark.parametrize(
    ("plugin", "answer", "standalone"),
    [
        (FILE_SOURCE, _answer("required"), True),
        (FILE_SOURCE, _answer("required", NOT_IMPLEMENTED), False),
        (FILE_SOURCE, _answer("required", OBJECTION), False),
        (FILE_SOURCE, _answer("required", name="other"), False),
        ("com.acme.Jdbc", _answer("required"), False),
        (FILE_SOURCE, {}, False),
    ],
)
def test_only_a_standalone_worker_objects_to_nothing(plugin: str, answer: dict[str, object], standalone: bool) -> None:
    """A connector that supports exactly-once gives a worker of a group nothing to object to either."""
    assert is_standalone(plugin, answer) is standalone


def test_plugins_that_reach_out_to_nothing_come_first_and_mirror_source_last() -> None:
    plugins = [
        {"class": MIRROR_SOURCE, "type": "source", "version": "1"},
        {"class": "com.acme.Jdbc", "type": "source", "version": "1"},
        {"class": "com.acme.Sink", "type": "sink", "version": "1"},
        {"class": FILE_SOURCE, "type": "source", "version": "1"},
    ]
    assert probe_plugins(plugins) == [FILE_SOURCE, "com.acme.Jdbc", MIRROR_SOURCE]


def test_plugins_without_a_version_come_last() -> None:
    """A worker lists a plugin that it can't load, without `version`."""
    plugins = [
        {"class": FILE_SOURCE, "type": "source"},
        {"class": "com.acme.Jdbc", "type": "source", "version": "1"},
        {"class": MIRROR_SOURCE, "type": "source", "version": "1"},
    ]
    assert probe_plugins(plugins) == ["com.acme.Jdbc", MIRROR_SOURCE, FILE_SOURCE]


@pytest.mark.parametrize(
    ("properties", "mode", "host", "port"),
    [
        ({}, "disabled", None, 8083),
        ({"exactly.once.source.support": " Preparing "}, "preparing", None, 8083),
        ({"listeners": "https://W1:8443,http://w1:8083"}, "disabled", "w1", 8083),
        ({"listeners": "http://0.0.0.0:9000"}, "disabled", None, 9000),
        ({"listeners": "http://:9000", "rest.advertised.host.name": "w2"}, "disabled", "w2", 9000),
        ({"rest.advertised.port": "80", "rest.advertised.host.name": "w3"}, "disabled", "w3", 80),
        ({"rest.advertised.port": "${port}"}, "disabled", None, None),
    ],
)
def test_worker_files(properties: dict[str, str], mode: str, host: str | None, port: int | None) -> None:
    file = read_worker_file("w.properties", properties)
    assert (file.mode, file.host, file.port) == (mode, host, port)
    assert file.group_id is None
    assert not {"exactly.once.source.support", "group.id"} & {*file.unresolved}


def test_a_worker_file_that_refers_to_config_providers() -> None:
    file = read_worker_file("w", {"group.id": "${env:G}", "exactly.once.source.support": "${env:M}"})
    assert (file.group_id, file.mode) == (None, None)
    assert file.unresolved == ("exactly.once.source.support", "group.id")


def test_a_file_without_its_mode_says_that_and_no_more() -> None:
    files = [WorkerFileSettings("w", None, "g", "w1", 8083), _file("v", "preparing")]
    refined = refine_mode(Mode.NOT_ENABLED, files)
    assert refined.mode is Mode.PREPARING
    assert refined.evidence == ("v says preparing", "w: only the worker can resolve its exactly.once.source.support")
    assert refine_mode(Mode.NOT_ENABLED, files[:1]).mode is Mode.NOT_ENABLED


def test_a_file_without_its_port_is_of_the_host_that_it_names() -> None:
    files = [
        WorkerFileSettings("w", "preparing", "g", "w1", None),
        WorkerFileSettings("v", "preparing", "g", None, None),
    ]
    assert files_of("http://w1:8083", files, group_id="g") == files[:1]
    assert files_of("http://w2:8083", files, group_id="g") == []


def _file(path: str, mode: str, host: str | None = None, group_id: str | None = "g") -> WorkerFileSettings:
    return WorkerFileSettings(path, mode, group_id, host, 8083)


def test_a_file_that_names_the_host_wins_over_those_that_name_none() -> None:
    named, anywhere, foreign = _file("a", "disabled", "w1"), _file("b", "preparing"), _file("c", "enabled", None, "h")
    files = [named, anywhere, foreign]
    assert files_of("http://w1:8083", files, group_id="g") == [named]
    assert files_of("http://w2:8083", files, group_id="g") == [anywhere]
    assert files_of("http://w1:8084", files, group_id="g") == []


@pytest.mark.parametrize(
    ("probed", "said", "mode", "evidence"),
    [
        ("not_enabled", [], "not_enabled", []),
        ("not_enabled", ["preparing"], "preparing", ["f0 says preparing"]),
        ("not_enabled", ["disabled"], "disabled", ["f0 says disabled"]),
        ("not_enabled", ["disabled", "disabled"], "disabled", ["f0 says disabled", "f1 says disabled"]),
        ("not_enabled", ["disabled", "preparing"], "not_enabled", ["files disagree"]),
        ("not_enabled", ["enabled"], "not_enabled", ["not restarted since"]),
        ("enabled", ["enabled"], "enabled", ["f0 says enabled"]),
        ("enabled", ["preparing"], "enabled", ["not restarted since"]),
        ("unknown", ["preparing"], "unknown", ["nothing confirms"]),
    ],
)
def test_a_file_refines_the_probe_and_never_overrules_it(
    probed: str, said: list[str], mode: str, evidence: list[str]
) -> None:
    files = [_file(f"f{number}", text) for number, text in enumerate(said)]
    refined = refine_mode(Mode(probed), files)
    assert refined.mode == mode
    assert len(refined.evidence) == len(evidence)
    assert all(part in text for part, text in zip(evidence, refined.evidence, strict=True))
    contradicts = evidence in (["files disagree"], ["not restarted since"])
    assert refined.contradiction == ("; ".join(refined.evidence) if contradicts else None)
