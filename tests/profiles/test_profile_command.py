"""`eosctl profile` as typed: the file keeps its comments, no secret gets into it, and every value tells who said it."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from eosctl.errors import ExitCode, InputFileError
from eosctl.profiles.operations import edit_yaml
from tests.conftest import Invoke, Outcome
from tests.fakes.clock import FakeTime
from tests.fakes.transactions import Scene

COMMENTED = """\
# our clusters
current: dev   # the harmless one

profiles:
  # only for trying things out
  dev:
    bootstrap_server: dev:9092
    connect_url:
      - http://w1:8083   # the old one
      - http://w2:8083
    expect: {kafka_cluster_id: abc}   # from `eosctl profile check`
    client:
      security.protocol: SASL_SSL
      # from the vault
      sasl.password_command: vault read canary
  prod: # nothing yet
"""

Profile = Callable[..., Outcome]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config" / "eosctl" / "config.yaml"


@pytest.fixture
def profile(invoke: Invoke) -> Profile:
    """`eosctl profile ARGS…`."""
    return lambda *args, **more: invoke("profile", *args, **more)


@pytest.fixture
def commented(file: Path) -> Path:
    file.parent.mkdir(parents=True)
    file.write_text(COMMENTED, encoding="utf-8")
    return file


def comments(text: str) -> list[str]:
    return [line[line.index("#") :] for line in text.splitlines() if "#" in line]


def test_from_nothing_to_a_profile_in_use(profile: Profile, file: Path) -> None:
    assert "There is no profile" in profile("list").stdout
    done = profile("set", "prod", "bootstrap_server=kafka:9092", "group_id=connect", "expect.group_id=connect")
    assert done.exit_code == 0, done.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert profile("use", "prod").exit_code == 0
    [row] = profile("list", "-o", "json").json()["data"]["rows"]
    assert (row["profile"], row["current"], row["expect"]) == ("prod", True, {"group_id": "connect"})
    shown = {row["name"]: row["value"] for row in profile("show", "-o", "json").json()["data"]["rows"]}
    assert shown["bootstrap_server"] == "kafka:9092"
    assert shown["expect.group_id"] == "connect"
    profile("set", "prod", "expect.group_id=", "group_id=")
    assert yaml.safe_load(file.read_text()) == {
        "profiles": {"prod": {"bootstrap_server": "kafka:9092", "expect": None}}, "current": "prod",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "path", "expected"),
    [
        (["dev", "bootstrap_server=other:1"], ["dev", "bootstrap_server"], "other:1"),
        (["dev", "group_id=new"], ["dev", "group_id"], "new"),
        (["dev", "client.sasl.username=me"], ["dev", "client", "sasl.username"], "me"),
        (["dev", "client.security.protocol=SSL"], ["dev", "client", "security.protocol"], "SSL"),
        (["dev", "client.ssl.key.location=/a b/'c': #d"], ["dev", "client", "ssl.key.location"], "/a b/'c': #d"),
        (["prod", "bootstrap_server=p:1"], ["prod", "bootstrap_server"], "p:1"),
        (["prod", "connect.ca=/ca.pem"], ["prod", "connect", "ca"], "/ca.pem"),
        (["third", "group_id=true"], ["third", "group_id"], "true"),
        (["third", "group_id=12"], ["third", "group_id"], "12"),
        (["dev", "audit_log=~/größe.jsonl"], ["dev", "audit_log"], "~/größe.jsonl"),
    ],
)
def test_comments_stay(profile: Profile, commented: Path, changes: list[str], path: list[str], expected: str) -> None:
    done = profile("set", *changes)
    assert done.exit_code == 0, done.stderr
    text = commented.read_text(encoding="utf-8")
    assert comments(text)[: len(comments(COMMENTED))] == comments(COMMENTED) or "#d" in expected
    found = yaml.safe_load(text)["profiles"]
    for step in path:
        found = found[step]
    assert found == expected
    untouched = [line for line in COMMENTED.splitlines() if line not in text.splitlines()]
    assert len(untouched) <= 1


def test_a_list_is_changed_and_removed(profile: Profile, commented: Path) -> None:
    assert profile("set", "dev", "connect_url=http://a:1,http://b:2").exit_code == 0
    assert yaml.safe_load(commented.read_text())["profiles"]["dev"]["connect_url"] == ["http://a:1", "http://b:2"]
    assert profile("set", "dev", "connect_url=").exit_code == 0
    assert "connect_url" not in yaml.safe_load(commented.read_text())["profiles"]["dev"]
    assert "# from the vault" in commented.read_text()


@pytest.mark.parametrize(
    ("args", "exit_code", "words"),
    [
        (["set", "dev", "client.sasl.password=canary"], 2, "Use sasl.password_env, sasl.password_file or"),
        (["set", "dev", "client.sasl.jaas.config=x password=canary;"], 2, "sasl.jaas.config may not stand"),
        (["set", "dev", "connect.token=canary"], 2, "Use token_env, token_file or token_command"),
        (["set", "dev", "connect_url=http://me:canary@h:1"], 2, "connect.username with connect.password_env"),
        (["set", "dev", "sasl.password=canary"], 2, "unknown key sasl.password"),
        (["set", "dev", "expect.cluster=x"], 2, "unknown key cluster"),
        (["set", "dev", "expect=x"], 2, "expect is a section"),
        (["set", "dev", "group_id"], 2, "KEY=VALUE"),
        (["set", "dev"], 2, "KEY=VALUE"),
        (["set", "a b", "group_id=x"], 2, "can't name a profile"),
        (["set", "dev", "expect.group_id=x"], 2, "in an editor"),
        (["use", "nosuch"], 1, "Its profiles: dev, prod."),
        (["show", "nosuch"], 2, "has no profile nosuch"),
        (["import", "new", "/nowhere"], 2, "cannot read /nowhere"),
    ],
)
def test_what_is_refused_changes_nothing(
    profile: Profile, commented: Path, args: list[str], exit_code: int, words: str
) -> None:
    commented.write_text(COMMENTED.replace("{kafka_cluster_id: abc}", "&a {kafka_cluster_id: abc}"), encoding="utf-8")
    before = commented.read_text(encoding="utf-8")
    done = profile(*args)
    assert done.exit_code == exit_code, done.stderr
    assert words in done.stderr
    assert "canary" not in done.stderr + done.stdout
    assert commented.read_text(encoding="utf-8") == before


def test_a_file_that_cannot_be_parsed_is_not_taken_for_an_empty_one(profile: Profile, file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.write_text("profiles: [")
    assert profile("set", "dev", "group_id=x").exit_code == 2
    assert file.read_text() == "profiles: ["


def test_a_file_that_another_process_edits_is_waited_for_and_left(profile: Profile, commented: Path) -> None:
    before, time = commented.read_text(), FakeTime()
    words = ("set", "prod", "group_id=g")
    folder = os.open(commented.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        refused = profile(*words, clock=time.clock())
        assert (refused.exit_code, commented.read_text()) == (ExitCode.REFUSED, before)
        waited_s = time.now_s
        time.later(waited_s / 2, partial(fcntl.flock, folder, fcntl.LOCK_UN))
        assert profile(*words, clock=time.clock()).exit_code == 0
    finally:
        os.close(folder)
    assert "group_id: g\n" in commented.read_text()


def test_show_tells_who_won(profile: Profile, commented: Path, tmp_path: Path) -> None:
    worker = tmp_path / "worker.properties"
    worker.write_text("group.id=w\noffset.storage.topic=mine\nlisteners=http://w9:8083\n")
    environ = {"EOSCTL_CONFIG_TOPIC": "from-env", "EOSCTL_CONNECT_TOKEN": "canary", "EOSCTL_CONNECT_MAP": "w*=lb"}
    environ["ALL_PROXY"] = "http://me:canary@proxy:3128"
    done = profile("show", "--origin", "-b", "flag:1", "-w", str(worker), "-o", "json", environ=environ)
    rows = {row["name"]: (row["value"], row["origin"]) for row in done.json()["data"]["rows"]}
    assert rows["profile"] == ("dev", str(commented))
    assert rows["bootstrap_server"] == ("flag:1", "flag")
    assert rows["config_topic"] == ("from-env", "env EOSCTL_CONFIG_TOPIC")
    assert rows["offset_topic"] == ("mine", str(worker))
    assert rows["group_id"] == ("w", str(worker))
    assert rows["status_topic"] == ("connect-status", "default")
    assert rows["connect_url"] == (["http://w1:8083", "http://w2:8083"], "profile dev")
    assert rows["connect_map"] == (["w*=lb"], "env EOSCTL_CONNECT_MAP")
    assert rows["proxy.all"] == ("http://proxy:3128", "env ALL_PROXY")
    assert rows["connect.token"] == ("***", "env EOSCTL_CONNECT_TOKEN")
    assert rows["expect.kafka_cluster_id"] == ("abc", "profile dev")
    assert rows["worker_config"] == ([str(worker)], "flag")
    assert "canary" not in done.stdout + done.stderr
    plain = profile("show", "-b", "flag:1").stdout
    assert "ORIGIN" not in plain
    assert "flag:1" in plain


def test_show_has_no_password_of_a_url(profile: Profile, tmp_path: Path) -> None:
    """`https://client:password@…` of the token endpoint was shown as it is."""
    client = tmp_path / "c.properties"
    client.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\nsome.new.setting=canary-1\nmetadata.max.age.ms=50000\n"
        "sasl.oauthbearer.token.endpoint.url=https://client:canary-2@idp/token?key=canary-3\n"
    )
    client.chmod(0o600)
    done = profile("show", "-b", "b:1", "--command-config", str(client), "-o", "json")
    rows = {row["name"]: row["value"] for row in done.json()["data"]["rows"]}
    assert rows["client.oauth_token_endpoint_url"] == "https://***@idp/token?…"
    assert "50000" in rows["client.extra"].values()
    assert "canary" not in done.stdout + done.stderr


def test_show_runs_no_command(profile: Profile, file: Path, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    client = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "me"}
    client["sasl.password_command"] = f"touch {marker}; echo canary"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"profiles": {"p": {"bootstrap_server": "k:1", "client": client}}}))
    rows = profile("show", "p", "-o", "json").json()["data"]["rows"]
    assert {"name": "client.sasl_password", "value": "***"} in rows
    assert not marker.exists()


@pytest.mark.root
@pytest.mark.parametrize("section", ["client", "connect"])
@pytest.mark.parametrize(
    ("mode", "group", "exit_code"), [(0o644, 4711, 4), (0o664, os.getegid(), 4), (0o664, 4711, 6), (0o646, 4711, 6)]
)
def test_commands_that_others_could_have_put_there_are_not_run(
    invoke: Invoke, file: Path, tmp_path: Path, section: str, mode: int, group: int, exit_code: int
) -> None:
    """Whoever could write the file had a command run as its owner at the owner's next eosctl."""
    marker = tmp_path / "ran"
    client = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "me"}
    secret = {"client": ("sasl.password_command", client), "connect": ("password_command", {"username": "me"})}
    key, settings = secret[section]
    chosen = {"bootstrap_server": "127.0.0.1:1", section: {**settings, key: f"touch {marker}; echo canary"}}
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"profiles": {"p": chosen, "q": {"bootstrap_server": "127.0.0.1:1"}}}))
    os.chown(file, -1, group)
    file.chmod(mode)
    done = invoke("txn", "list", "-p", "p", "--timeout", "300s")
    assert (done.exit_code, marker.exists()) == (exit_code, exit_code != 6), done.stderr
    if exit_code == 6:
        assert f"{file} holds commands that eosctl runs and has mode {mode:04o}: others on this" in done.stderr
        assert f"chmod go-w {file}" in done.stderr
    without_commands = invoke("txn", "list", "-p", "q", "--timeout", "300s")
    assert without_commands.exit_code == exit_code, "it says which broker gets the secrets of its owner"
    assert invoke("profile", "show", "p").exit_code == 0, "looking at it runs nothing"


def test_commands_in_a_file_of_another_user_are_not_run(
    invoke: Invoke, commented: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commented.chmod(0o644)
    if commented.stat().st_uid == 0:
        os.chown(commented, 4712, -1)
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    done = invoke("txn", "list", "-p", "dev")
    assert done.exit_code == 6
    assert f"belongs to user {commented.stat().st_uid}, who can change it" in done.stderr


def test_import_of_a_worker_and_of_a_client(profile: Profile, file: Path, tmp_path: Path) -> None:
    worker, client = tmp_path / "worker.properties", tmp_path / "client.properties"
    worker.write_text(
        "bootstrap.servers=a:1,b:2\ngroup.id=g\noffset.storage.topic=o\nsasl.jaas.config=x required password=canary;\n"
    )
    client.write_text("bootstrap.servers=c:3\nsecurity.protocol=SSL\nssl.key.password=canary\n")
    for each in (worker, client):
        each.chmod(0o600)
    assert profile("import", "w", str(worker)).exit_code == 0
    done = profile("import", "c", str(client))
    assert yaml.safe_load(file.read_text())["profiles"] == {
        "w": {"bootstrap_server": "a:1,b:2", "group_id": "g", "offset_topic": "o", "worker_config": [str(worker)]},
        "c": {"bootstrap_server": "c:3", "command_config": str(client)},
    }
    assert "canary" not in file.read_text() + done.stdout + done.stderr
    shown = {row["name"]: row["value"] for row in profile("show", "c", "-o", "json").json()["data"]["rows"]}
    assert shown["client.security_protocol"] == "SSL"
    assert shown["client.ssl_key_password"] == "***"


def test_import_of_one_flow_of_a_dedicated_mirror_maker(profile: Profile, file: Path, tmp_path: Path) -> None:
    """It became a profile of a client without addresses."""
    mm2 = tmp_path / "mm2.properties"
    mm2.write_text("clusters=a,b\na.bootstrap.servers=k1:9\nb.bootstrap.servers=k2:9\n"
                   "a->b.enabled=true\nb->a.enabled=true\n")  # fmt: skip
    asked = profile("import", "m", str(mm2))
    assert (asked.exit_code, "several flows: a->b (group a-mm2), b->a (group b-mm2)" in asked.stderr) == (2, True)
    assert profile("import", "m", str(mm2), "-g", "b-mm2").exit_code == 0
    topics = {f"{kind}_topic": f"mm2-{label}.b.internal" for kind, label in
              (("config", "configs"), ("offset", "offsets"), ("status", "status"))}  # fmt: skip
    assert yaml.safe_load(file.read_text())["profiles"] == {
        "m": {"bootstrap_server": "k1:9", "group_id": "b-mm2", **topics, "worker_config": [str(mm2)]}
    }


# check --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expect", "exit_code", "statuses"),
    [
        ({}, 0, ["ok", "ok", "ok"]),
        ({"kafka_cluster_id": "fake-cluster-id", "group_id": "g"}, 0, ["ok", "ok", "ok"]),
        ({"kafka_cluster_id": "other"}, 3, ["wrong", "ok", "wrong"]),
        ({"group_id": "other"}, 3, ["ok", "wrong", "ok"]),
    ],
)
def test_check(
    profile: Profile, stage: Scene, tmp_path: Path, expect: dict[str, str], exit_code: int, statuses: list[str]
) -> None:
    config = tmp_path / "c.yaml"
    config.write_text(json.dumps({"profiles": {"p": {"expect": expect}}}))
    done = profile("check", "p", "--config", str(config), *stage.flags, "-o", "json", **stage.surroundings)
    assert done.exit_code == exit_code, done.stderr
    assert [row["status"] for row in done.json()["data"]["rows"]] == statuses


def test_import_and_check_tell_what_java_would_refuse(profile: Profile, stage: Scene, tmp_path: Path) -> None:
    """A PEM trust store with a password: eosctl takes it, and the workers that get the same file do not start."""
    settings = tmp_path / "client.properties"
    pem = f"ssl.truststore.type=PEM\nssl.truststore.location={tmp_path}/ca.pem\nssl.truststore.password=canary\n"
    settings.write_text(f"bootstrap.servers=127.0.0.1:1\nsecurity.protocol=SSL\n{pem}")
    settings.chmod(0o600)
    done = profile("import", "p", str(settings), "-o", "json")
    assert (done.exit_code, [each["code"] for each in done.json()["errors"]]) == (0, ["java_refuses"])
    checked = profile("check", "p", "--timeout", "5s", "-o", "json", **stage.surroundings)
    assert "java_refuses" in [each["code"] for each in checked.json()["errors"]]
    assert "canary" not in done.stdout + done.stderr + checked.stdout + checked.stderr


def test_check_of_what_does_not_answer(profile: Profile) -> None:
    done = profile(
        "check", "-b", "127.0.0.1:1", "-u", "http://127.0.0.1:1", "-g", "g", "--timeout", "300s", "-o", "json"
    )
    assert done.exit_code == 4
    assert [row["status"] for row in done.json()["data"]["rows"]] == ["failed"] * 3
    assert profile("check").exit_code == 2


def test_check_of_a_cluster_that_answers_and_a_worker_that_does_not(profile: Profile, stage: Scene) -> None:
    flags = [*stage.flags, "-u", "http://127.0.0.1:1"]
    done = profile("check", *flags, "--timeout", "300s", "-o", "json", **stage.surroundings)
    assert [row["status"] for row in done.json()["data"]["rows"]][:2] == ["ok", "ok"]
    assert (done.exit_code, [error["code"] for error in done.json()["errors"]]) == (7, ["unreachable"])


# edits --------------------------------------------------------------------------------------------------------------

EXAMPLES = settings(max_examples=30, deadline=None, derandomize=True, database=None)
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Zl", "Zp")), max_size=8)
KEYS = st.sampled_from(["a", "b.c", "d e", "ü", "true", "1", "#x", "k:"])
LEAVES = st.one_of(WORDS, st.lists(WORDS, max_size=2))
TREES = st.dictionaries(KEYS, st.one_of(LEAVES, st.dictionaries(KEYS, LEAVES, max_size=3)), max_size=3)


@EXAMPLES
@given(TREES, st.lists(KEYS, min_size=1, max_size=3), st.one_of(st.none(), WORDS, st.lists(WORDS, max_size=2)))
def test_an_edit_is_the_change_that_was_asked_for_or_none(document: Any, path: list[str], value: object) -> None:
    before = yaml.safe_dump(document, default_flow_style=False, allow_unicode=True)
    commented = "# first\n" + "".join(f"{line}\n" for line in before.splitlines()) + "# last\n"
    try:
        after = edit_yaml(commented, path, value, source="f")
    except InputFileError:
        return
    assert after.startswith("# first\n")
    assert "# last\n" in after
    found: Any = yaml.safe_load(after)
    for step in path[:-1]:
        found = (found or {}).get(step) or {}
    assert (found or {}).get(path[-1]) == value


@EXAMPLES
@given(
    st.dictionaries(st.sampled_from("abc"), st.dictionaries(st.sampled_from("xyz"), WORDS, min_size=1), min_size=1),
    WORDS,
)
def test_usual_layouts_are_never_refused(document: dict[str, dict[str, str]], value: str) -> None:
    text = yaml.safe_dump({"profiles": document}, default_flow_style=False, allow_unicode=True, width=1000)
    for path in (["profiles", "a", "x"], ["profiles", "new", "x"], ["current"]):
        text = edit_yaml(text, path, value, source="f")
    assert yaml.safe_load(text)["profiles"]["a"]["x"] == value
