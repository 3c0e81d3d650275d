"""The passwords of a sandbox: nobody gets in without, and they stand in files of their owner alone."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from eosctl.core.java.properties import parse_properties
from eosctl.core.workers.modes import Mode
from eosctl.sandbox.login import SandboxLogin, SecureFiles, SecureListener
from eosctl.sandbox.settings import BrokerPorts, GroupSpec, StackSpec, broker_properties
from tests.sandbox_fixtures import GROUP, PATIENCE_S, FileSource, sandbox


def test_no_listener_of_a_broker_with_a_login_is_open(tmp_path: Path) -> None:
    """Whoever was on the machine was a secured sandbox's super user, and read the passwords of a rehearsal."""
    login = SandboxLogin(tmp_path / "login")
    login.make_for_brokers()
    spec = StackSpec(secure=SecureListener({"super": "pw"}, super_users=("super",)), forwarded=(70,))
    told = broker_properties(1, [BrokerPorts(1, 2, 3)], tmp_path, spec, SecureFiles(tmp_path), login)
    protocols = dict(each.split(":") for each in told["listener.security.protocol.map"].split(","))
    assert {protocols[each.partition(":")[0]] for each in told["listeners"].split(",")} == {
        "SASL_PLAINTEXT",
        "SASL_SSL",
    }
    assert protocols["CONTROLLER"] == "SASL_PLAINTEXT"
    assert told["super.users"] == "User:eosctl;User:super"
    assert not [name for name, value in told.items() if "OAUTHBEARER" in value or "oauthbearer" in name]
    assert {path.stat().st_mode & 0o777 for path in login.directory.iterdir()} == {0o600}
    assert login.directory.stat().st_mode & 0o777 == 0o700


def test_a_new_start_has_another_password(tmp_path: Path) -> None:
    """On the port that a node could not get, somebody else may have been shown the one of before."""
    login = SandboxLogin(tmp_path / "login")
    assert (login.rest_headers(), login.client_properties(), login.environ()) == ({}, {}, {})
    login.make_for_workers()
    login.make_for_brokers()
    before = (login.rest_headers(), login.client_properties())
    login.make_for_workers()
    login.make_for_brokers()
    assert login.rest_headers() != before[0]
    assert login.client_properties() != before[1]


def is_let_in(address: str) -> bool:
    """Whether a Kafka listener talks to a client without a login."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": address, "enable.metrics.push": False, "log_level": 0})
    try:
        return bool(admin.list_topics(timeout=3).brokers)
    except KafkaException:
        return False


def status_of(url: str, **headers: str) -> int:
    """What a worker answers to the listing of its connectors."""
    request = urllib.request.Request(f"{url}/connectors", headers=headers)
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=PATIENCE_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.code


@pytest.mark.live
@pytest.mark.parametrize("version", ["3.3.2", "4.3.1"])
def test_a_stack_with_logins_lets_nobody_in_without(tmp_path_factory: pytest.TempPathFactory, version: str) -> None:
    """Nor at the controller's listener; the workers forward requests to their leader, and connectors run."""
    group = GroupSpec(modes=(Mode.ENABLED,) * 2)
    spec = StackSpec(kafka_version=version, groups=(group,), rest_login=True, broker_login=True)
    with sandbox(spec, tmp_path_factory, name="closed") as stack:
        (broker,) = stack.state.of_kind("broker")
        listeners = parse_properties(Path(broker.config).read_text(), source="x").values["listeners"]
        addresses = [each.partition("://")[2] for each in listeners.split(",")]
        assert len(addresses) == 2
        assert not [each for each in addresses if is_let_in(each)]
        urls = stack.urls(GROUP)
        assert {status_of(url) for url in urls} == {401}
        assert {status_of(url, **stack.login.rest_headers()) for url in urls} == {200}
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        opener.addheaders = list(stack.login.rest_headers().items())
        for number, url in enumerate(urls):
            path = stack.directory / f"{number}.txt"
            path.write_text("line\n")
            source = FileSource(url, f"c{number}", path, f"topic{number}", opener=opener)
            source.put()
            source.wait_running()


@pytest.mark.live
def test_a_secured_sandbox_says_which_file_is_whose_and_no_password(invoke: Any, tmp_path: Path) -> None:
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    name = f"secure-{os.getpid()}"
    up = invoke("sandbox", "up", "--secure", "--name", name, "-o", "json", environ=environ)
    try:
        assert up.exit_code == 0, up.stderr
        data = up.json()["data"]
        configs = {user["principal"]: Path(user["command_config"]) for user in data["principals"]}
        assert {"User:super", "User:worker", "User:producer", "User:consumer", "User:admin"} <= set(configs)
        assert {path.stat().st_mode & 0o777 for path in configs.values()} == {0o600}
        assert next(iter(configs.values())).parent.stat().st_mode & 0o777 == 0o700
        assert (tmp_path / "state" / "eosctl" / "sandbox" / name).stat().st_mode & 0o777 == 0o700
        files = [row["config"] for row in data["rows"]]
        assert {Path(file).stat().st_mode & 0o777 for file in files} == {0o600}

        passwords = [path.read_text().split('password="')[1].split('"')[0] for path in configs.values()]
        made = Path(data["directory"]) / "login"
        passwords += [(made / name).read_text() for name in ("rest.password", "brokers.password")]
        assert len(set(passwords)) == len(passwords)
        status = invoke("sandbox", "status", "--name", name, environ=environ)
        assert f"User:worker: --command-config {configs['User:worker']}" in status.stdout
        said = [up.stdout, up.stderr, status.stdout, (Path(data["directory"]) / "stack.json").read_text()]
        said += [Path(row["log"]).read_text() for row in data["rows"]]
        said += [
            Path(f"/proc/{row['pid']}/{what}").read_text() for row in data["rows"] for what in ("cmdline", "environ")
        ]
        assert not [password for password in passwords for text in said if password in text]

        target = environ | data["environ"]  # what `export` lines say: the super user
        listed = invoke("workers", "list", "-o", "json", environ=target)
        assert [row["mode"] for row in listed.json()["data"]["rows"]] == ["enabled"], listed.stderr
        checked = invoke("acls", "check", "--strict", "-o", "json", environ=target)
        assert (checked.exit_code, checked.json()["data"]["rows"]) == (0, [])
        assert {status_of(row["address"]) for row in data["rows"] if row["address"].startswith("http")} == {401}
        listeners = parse_properties(Path(data["rows"][0]["config"]).read_text(), source="x").values["listeners"]
        addresses = [each.partition("://")[2] for each in listeners.split(",")]
        assert (len(addresses), [each for each in addresses if is_let_in(each)]) == (3, [])
        mine = ["--command-config", str(configs["User:worker"])]
        assert invoke("acls", "check", *mine, environ=target).exit_code == 5
    finally:
        assert invoke("sandbox", "down", "--name", name, environ=environ).exit_code == 0
    assert not Path(data["directory"]).exists()
