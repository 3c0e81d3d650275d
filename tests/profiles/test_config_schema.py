"""The schema of the config file: what the reader takes it takes, what the reader refuses it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from eosctl.errors import InputFileError
from eosctl.explain.kinds import all_kinds
from eosctl.machine.files import NamedFiles
from eosctl.profiles.file_format import Connect, Profile, config_schema
from eosctl.profiles.sources import CONNECT_SECRETS, SECRET_SUFFIXES, Sources, check_profile, parse_config
from eosctl.target import DEFAULT_TOPICS
from tests.conftest import Invoke
from tests.profiles.test_profile_command import COMMENTED
from tests.test_profiles import PROFILES

ROOT = Path(__file__).resolve().parents[2]
FILES = {
    "commented": COMMENTED,
    "profiles": PROFILES,
    "exporter": (ROOT / "deploy" / "exporter" / "config.yaml").read_text(),
    "job": next(
        each["data"]["config.yaml"]
        for each in yaml.safe_load_all((ROOT / "deploy" / "upgrade-job" / "upgrade-job.yaml").read_text())
        if each["kind"] == "ConfigMap"
    ),
    "empty": "",
    "anchors": "kept: &kept {group_id: g}\nprofiles: {a: {<<: *kept, client: {request.timeout.ms: 5000}}}\n",
    "numbers": "current: 5\nprofiles: {5: {group_id: 5, connect: {trust_discovered: true}, ignore: [a, b:c]}}\n",
    "nulls": "current:\nprofiles: {a: {connect_url: , client: , connect: , expect: {mode: }}, b: }\n",
    "null members": "profiles: {a: {connect: {ca: , token_env: }, client: {ssl.ca.location: }}}\n",
}
WRONG: dict[str, dict[str, Any]] = {
    "unknown": {"bootstrap_servers": "a:1"},
    "expect": {"expect": {"group": "g"}},
    "mode": {"expect": {"mode": "on"}},
    "connect": {"connect": {"user": "u"}},
    "password": {"connect": {"username": "u", "password": "canary"}},
    "client password": {"client": {"sasl.password": "canary"}},
    "jaas": {"client": {"sasl.jaas.config": "canary"}},
    "list": {"client": ["a"]},
}


def faults(document: Any) -> list[str]:
    """As an editor sees it: JSON has no keys but text."""
    return [
        error.message for error in Draft202012Validator(config_schema()).iter_errors(json.loads(json.dumps(document)))
    ]


@pytest.mark.parametrize("name", FILES)
def test_what_is_read_is_valid(name: str) -> None:
    file = parse_config(FILES[name], name)
    for profile in file.profiles:
        file.profile(profile)
    document = yaml.safe_load(FILES[name])
    assert document is None or faults(document) == []


def test_a_member_without_a_value_is_not_there() -> None:
    """It used to be the text None: a file of that name was looked for."""
    profile = parse_config(FILES["null members"], "null members").profile("a")
    sources = Sources({}, {}, NamedFiles(), profile=profile, profile_origin="profile a")
    assert sources.first("connect_ca", within="connect") is None
    assert sources.secret("connect_token", within="connect") is None
    assert sources.section("client") == {}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused_is_a_fault(name: str) -> None:
    with pytest.raises(InputFileError):
        check_profile(WRONG[name], name)
    assert len(faults({"profiles": {"a": WRONG[name]}})) == 1


def test_each_secret_has_each_way_and_each_topic_is_a_member() -> None:
    assert {secret + suffix for secret in CONNECT_SECRETS for suffix in SECRET_SUFFIXES} <= {*Connect.__struct_fields__}
    assert DEFAULT_TOPICS.keys() <= {*Profile.__struct_fields__}


def test_what_profile_set_writes_is_valid(invoke: Invoke, tmp_path: Path) -> None:
    changes = ["connect_url=http://a:1,http://b:1", "client.sasl.password_env=P", "expect.mode=enabled", "ignore=x,y:z"]
    assert invoke("profile", "set", "prod", "bootstrap_server=a:9092", *changes).exit_code == 0
    written = (tmp_path / "config" / "eosctl" / "config.yaml").read_text()
    assert faults(yaml.safe_load(written)) == []
    removed = ["expect.mode=", "client.sasl.password_env=", "connect_url="]  # expect.mode= was "not one of enabled, …"
    assert invoke("profile", "set", "prod", *removed).exit_code == 0
    document = yaml.safe_load((tmp_path / "config" / "eosctl" / "config.yaml").read_text())
    assert faults(document) == []
    kept = {key: value for key, value in document["profiles"]["prod"].items() if value}
    assert kept == {"bootstrap_server": "a:9092", "ignore": ["x", "y:z"]}


def test_a_folder_of_schemas(invoke: Invoke, tmp_path: Path) -> None:
    """Each is what `schema KIND` prints; written again it is the same."""
    folder = tmp_path / "made" / "schemas"
    for _ in range(2):
        outcome = invoke("schema", "--all", str(folder), "-o", "json")
        assert outcome.exit_code == 0
        assert outcome.json()["data"]["folder"] == str(folder)
    listed = json.loads((folder / "index.json").read_text())["schemas"]
    assert {each["kind"] for each in listed} == {*all_kinds(), "config-file"}
    assert {path.name for path in folder.iterdir()} == {"index.json", *(each["file"] for each in listed)}
    for each in listed:
        schema = json.loads((folder / each["file"]).read_text())
        Draft202012Validator.check_schema(schema)
        assert (schema["title"], schema["description"]) == (each["kind"], each["what"])
    assert json.loads((folder / "config-file.schema.json").read_text()) == json.loads(
        invoke("schema", "config-file").stdout
    )


def test_a_folder_that_cannot_be_written(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert invoke("schema", "--all", str(tmp_path / "file" / "below")).exit_code == 2
    assert invoke("schema", "fence-plan", "--all", str(tmp_path / "other")).exit_code == 2
    assert not (tmp_path / "other").exists()
