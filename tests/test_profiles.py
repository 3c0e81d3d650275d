"""Who wins: flag, environment, profile, worker config, default; and what is refused on the way."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eosctl.core.workers.url import parse_worker_url
from eosctl.errors import EosctlError, InputFileError, UsageError
from eosctl.machine.files import NamedFiles
from eosctl.profiles import profile_target, resolve_target
from eosctl.target import Target

CONFIG = "/home/me/.config/eosctl/config.yaml"
PROFILES = """\
current: dev
profiles:
  dev:
    bootstrap_server: dev:9092
    group_id: dev-connect
    connect_url: [http://w1:8083, http://w2:8083]
    expect: {kafka_cluster_id: abc}
  prod:
    bootstrap_server: prod:9092
    client:
      security.protocol: SASL_SSL
      sasl.mechanism: PLAIN
      sasl.username: eosctl
      sasl.password_env: PROD_PASSWORD
"""
WORKER = "bootstrap.servers=worker:9092\ngroup.id=from-worker\noffset.storage.topic=worker-offsets\n"


class GivenFiles(NamedFiles):
    """What `given` returns; all of it is one's own."""

    def __init__(self, given: Callable[[str], bytes]) -> None:
        super().__init__()
        self._given = given

    def read(self, path: str | Path) -> bytes:
        return self._given(str(path))


def _resolve(flags: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None, **files: str) -> Target:
    """The Target with `files` as the only files there are; `profiles` is the config file at its usual place."""
    texts = {CONFIG if name == "profiles" else name: text for name, text in files.items()}

    def read_file(path: str) -> bytes:
        if path not in texts:
            raise InputFileError(f"cannot read {path}: no such file") from FileNotFoundError()
        return texts[path].encode("utf-8")

    environ = {"XDG_CONFIG_HOME": "/home/me/.config", **(environ or {})}
    return resolve_target(flags or {}, environ, files=GivenFiles(read_file))


def test_nothing_said_is_defaults_and_no_cluster() -> None:
    target = _resolve()
    assert target.client is None
    assert (target.config_topic, target.offset_topic) == ("connect-configs", "connect-offsets")
    assert target.origins["config_topic"] == "default"
    with pytest.raises(UsageError, match="no Kafka cluster was named"):
        target.require_client()
    with pytest.raises(UsageError, match="no Connect group was named"):
        target.require_group_id()


@pytest.mark.parametrize(
    ("flags", "environ", "server", "origin"),
    [
        ({"bootstrap_server": "f:1"}, {"EOSCTL_BOOTSTRAP_SERVER": "e:1"}, "f:1", "flag"),
        ({}, {"EOSCTL_BOOTSTRAP_SERVER": "e:1"}, "e:1", "env EOSCTL_BOOTSTRAP_SERVER"),
        ({}, {}, "dev:9092", "profile dev"),
        ({"profile": "prod"}, {"PROD_PASSWORD": "x"}, "prod:9092", "profile prod"),
        ({}, {"EOSCTL_PROFILE": "prod", "PROD_PASSWORD": "x"}, "prod:9092", "profile prod"),
        ({"command_config": "c"}, {}, "client:9092", "flag"),
        ({"command_config": "c", "bootstrap_server": "f:1"}, {}, "f:1", "flag"),
    ],
)
def test_who_names_the_cluster(flags: dict[str, Any], environ: dict[str, str], server: str, origin: str) -> None:
    target = _resolve(
        {"worker_config": ("w",), **flags}, environ, profiles=PROFILES, w=WORKER, c="bootstrap.servers=client:9092"
    )
    assert target.require_client().bootstrap_servers == (server,)
    assert target.origins["bootstrap_server"] == origin


@pytest.mark.parametrize(
    ("said", "servers"),
    [
        ("SASL_SSL://a:9092, b:9093", ("a:9092", "b:9093")),
        ("INTERNAL-1://[2001:db8::1]:9092", ("[2001:db8::1]:9092",)),
        ("://a:9092", ("a:9092",)),
    ],
)
@pytest.mark.parametrize("where", ["flag", "file", "worker"])
def test_a_listeners_name_is_dropped_wherever_it_is_said(said: str, servers: tuple[str, ...], where: str) -> None:
    """The check let it pass, and then the native client called it ambiguous."""
    flags: dict[str, dict[str, Any]] = {
        "flag": {"bootstrap_server": said},
        "file": {"command_config": "c"},
        "worker": {"worker_config": ("c",)},
    }
    target = _resolve(flags[where], c=f"bootstrap.servers={said}\n")
    assert target.require_client().bootstrap_servers == servers


@pytest.mark.parametrize("said", ["a", "a:0", "a:99999", "2001:db8::1:9092", "a/b:1", "SSL://a", "SSL:/a:1"])
def test_what_is_no_host_and_port_is_refused(said: str) -> None:
    with pytest.raises(UsageError, match="is not a bootstrap server"):
        _resolve({"bootstrap_server": said})


def test_a_worker_config_is_asked_last() -> None:
    target = _resolve({"worker_config": ("w",)}, w=WORKER)
    assert target.require_client().bootstrap_servers == ("worker:9092",)
    assert (target.group_id, target.offset_topic) == ("from-worker", "worker-offsets")
    assert target.origins["group_id"] == target.origins["offset_topic"] == target.origins["bootstrap_server"] == "w"
    assert [worker.exactly_once for worker in target.worker_configs] == ["disabled"]


def test_what_a_worker_config_refers_to_is_asked_for() -> None:
    """The group was called ${env:GROUP}."""
    target = _resolve({"worker_config": ("w",)}, w="group.id=${env:GROUP}\nrest.advertised.host.name=${env:IP}\n")
    assert (target.group_id, target.client) == (None, None)
    [note] = target.notes
    assert note.startswith("w: only the worker can resolve group.id, rest.advertised.host.name; ")
    assert "--connect-map" in note


def test_workers_of_two_groups_are_refused() -> None:
    with pytest.raises(UsageError, match="disagree on group_id: from-worker in w, other in v"):
        _resolve({"worker_config": ("w", "v")}, w=WORKER, v=WORKER.replace("from-worker", "other"))


TOPICS = "bootstrap.servers=b:1\ngroup.id=g\nconfig.storage.topic={}\noffset.storage.topic={}\n"


def test_workers_of_one_group_with_different_topics_can_be_looked_at() -> None:
    """A worker with another offsets topic is what a check is to find, and no check began: exit code 2."""
    right, wrong = TOPICS.format("c", "o"), TOPICS.format("c", "other")
    target = _resolve({"worker_config": ("a", "b", "c")}, a=wrong, b=right, c=right)
    assert (target.config_topic, target.offset_topic) == ("c", "o"), "what most of them say"
    [said] = target.disagreements
    assert said == (
        "the worker configs disagree on offset.storage.topic: o in b, other in a; o is taken for the group's"
    )
    assert said in target.warnings
    with pytest.raises(UsageError, match=r"disagree on offset\.storage\.topic: .*; nothing was written"):
        target.require_agreement()


def test_who_names_the_topic_settles_it() -> None:
    given = {"worker_config": ("a", "b"), "offset_topic": "o"}
    target = _resolve(given, a=TOPICS.format("c", "other"), b=TOPICS.format("c", "o"))
    assert (target.offset_topic, target.disagreements) == ("o", ())
    target.require_agreement()


def test_urls_and_expectations_come_from_the_profile() -> None:
    target = _resolve(profiles=PROFILES)
    assert target.connect_urls == ("http://w1:8083", "http://w2:8083")
    assert target.expect == {"kafka_cluster_id": "abc"}


@pytest.mark.parametrize(
    ("flags", "environ", "profile", "origin"),
    [
        ({"connect_map": ("w*:8083=http://lo:1808*", "x=y")}, {"EOSCTL_CONNECT_MAP": "a=b"}, "", "flag"),
        ({}, {"EOSCTL_CONNECT_MAP": "w*:8083=http://lo:1808*,x=y"}, "a=b", "env EOSCTL_CONNECT_MAP"),
        ({}, {}, "['w*:8083=http://lo:1808*', x=y]", "profile p"),
    ],
)
def test_where_workers_are_reached_is_said_like_all_else(
    flags: dict[str, Any], environ: dict[str, str], profile: str, origin: str
) -> None:
    profiles = f"current: p\nprofiles:\n  p:\n    connect_map: {profile}\n"
    target = _resolve(flags, environ, profiles=profiles)
    assert [str(each) for each in target.connect_map] == ["w*:8083=http://lo:1808*", "x=y"]
    assert target.origins["connect_map"] == origin
    trusted = [url for url in ("http://lo:18082", "http://w2:8083") if target.connect.trusts(parse_worker_url(url))]
    assert trusted == ["http://lo:18082"], "a password may go where the user said"


def test_a_password_in_a_url_goes_where_its_worker_is_reached() -> None:
    target = _resolve({"connect_map": ("w1=lo:1",)}, {"EOSCTL_CONNECT_URL": "http://me:pw@w1:8083"})
    assert target.connect.authorization(parse_worker_url("http://lo:1")) is not None


def test_a_profile_with_what_maps_no_worker_is_refused() -> None:
    with pytest.raises(UsageError, match="maps no worker"):
        _resolve(profiles="current: p\nprofiles:\n  p:\n    connect_map: w1\n")


def test_proxies_are_those_of_the_environment() -> None:
    proxy = _resolve({}, {"HTTPS_PROXY": "http://me:pw@proxy:3128"}).connect.proxies.of("https://w1:8443")
    assert proxy is not None
    assert (proxy.shown, proxy.variable) == ("http://proxy:3128", "HTTPS_PROXY")


def test_urls_from_the_environment_are_separated_by_commas() -> None:
    target = _resolve({}, {"EOSCTL_CONNECT_URL": "http://a:1, http://b:2"})
    assert target.connect_urls == ("http://a:1", "http://b:2")


@pytest.mark.parametrize(
    ("line", "environ"),
    [
        ("sasl.password_env: PROD_PASSWORD", {"PROD_PASSWORD": "s3cret"}),
        ("sasl.password_file: pw", {}),
        ("sasl.password_command: printf 's3cret\\n'", {}),
    ],
)
def test_secrets_are_fetched(line: str, environ: dict[str, str]) -> None:
    profiles = PROFILES.replace("sasl.password_env: PROD_PASSWORD", line)
    client = _resolve({"profile": "prod"}, environ, profiles=profiles, pw="s3cret\n").require_client()
    assert client.sasl_password is not None
    assert client.sasl_password.reveal() == "s3cret"
    assert "s3cret" not in repr(client)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("sasl.password_env: PROD_PASSWORD", "sasl.password: s3cret", "sasl.password may not stand in a profile"),
        ("sasl.password_env: PROD_PASSWORD", "sasl.password_command: exit 3", "sasl.password_command: the command"),
        ("sasl.password_env: PROD_PASSWORD", "sasl.password_env: NOPE", "the environment has no NOPE"),
        ("  prod:", "  other:", "has no profile prod"),
        ("bootstrap_server: prod:9092", "bootstrap_sever: prod:9092", "unknown key bootstrap_sever"),
        ("current: dev", "current: [", "config.yaml:"),
        ("profiles:", "profiles: 3\nx:", "profiles: a mapping is needed"),
    ],
)
def test_a_bad_profile_is_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(InputFileError) as caught:
        _resolve({"profile": "prod"}, {"PROD_PASSWORD": "x"}, profiles=PROFILES.replace(old, new))
    assert message in caught.value.message
    assert "s3cret" not in caught.value.message


@pytest.mark.parametrize(
    "flags", [{"command_config": "nope"}, {"worker_config": ("nope",)}, {"config": "nope"}, {"profile": "prod"}]
)
def test_a_file_that_was_named_must_be_there(flags: dict[str, Any]) -> None:
    """Where there was no config file, `-p prod` used to be told to check the path of a file it had not named."""
    with pytest.raises(InputFileError, match="cannot read") as refused:
        _resolve(flags)
    if "profile" in flags:
        assert refused.value.message.startswith("there is no profile prod: ")
        assert refused.value.hint == "Make it: eosctl profile set prod bootstrap_server=HOST:PORT"


@pytest.mark.parametrize(
    "server", ["host", "host:", "host:x", "a b:1", "host:0", "host:70000", ",", "a:1,b", "::1:9092"]
)
def test_a_bad_bootstrap_server_is_refused(server: str) -> None:
    with pytest.raises(UsageError, match="bootstrap server"):
        _resolve({"bootstrap_server": server})


@pytest.mark.parametrize("server", ["host:1", "[::1]:9092", "10.0.0.1:9092,b.example:65535"])
def test_a_good_bootstrap_server_is_taken(server: str) -> None:
    assert ",".join(_resolve({"bootstrap_server": server}).require_client().bootstrap_servers) == server


def test_warnings_of_the_client_file_reach_the_target() -> None:
    target = _resolve({"command_config": "c", "bootstrap_server": "h:1"}, c="foo=1")
    assert target.warnings == ("c:1: foo has no effect here",)


def test_every_refusal_exits_with_2() -> None:
    with pytest.raises(EosctlError) as caught:
        _resolve({"command_config": "nope"})
    assert int(caught.value.exit_code) == 2


def test_a_profile_alone_says_where_a_store_of_its_cluster_is() -> None:
    """`TOPIC@prod`: what -b, -u or EOSCTL_BOOTSTRAP_SERVER say is about the command's own cluster."""
    flags = {"bootstrap_server": "f:1", "profile": "dev", "config": CONFIG, "offset_topic": "mine"}
    environ = {"EOSCTL_BOOTSTRAP_SERVER": "e:1", "PROD_PASSWORD": "x"}
    target = profile_target("prod", flags, environ, files=GivenFiles(lambda _path: PROFILES.encode()))
    assert target.require_client().bootstrap_servers == ("prod:9092",)
    assert (target.offset_topic, target.group_id, target.connect_urls) == ("connect-offsets", None, ())
    with pytest.raises(InputFileError, match="no profile nosuch"):
        profile_target("nosuch", flags, environ, files=GivenFiles(lambda _path: PROFILES.encode()))


def test_properties_are_read_as_java_reads_them() -> None:
    """ISO-8859-1, whatever the file was saved as: a password works here exactly where it works for kafka-*.sh."""
    texts = {"latin": "sasl.password=p\xe4\xdf".encode("iso-8859-1"), "escaped": rb"sasl.password=p\u00e4\u00df"}
    for name in texts:
        flags = {"command_config": name, "bootstrap_server": "h:1"}
        target = resolve_target(flags, {}, files=GivenFiles(lambda path: texts.get(path, b"")))
        assert target.require_client().sasl_password is not None
        assert target.require_client().sasl_password.reveal() == "p\xe4\xdf"  # type: ignore[union-attr]


def test_a_profile_in_another_encoding_is_refused_without_its_content() -> None:
    with pytest.raises(InputFileError, match="is not in UTF-8") as caught:
        resolve_target({}, {}, files=GivenFiles(lambda _path: b"caf\xe9 canary"))
    assert "canary" not in repr(caught.value.__cause__)


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(
    st.one_of(st.binary(max_size=60), st.text(alphabet="profiles:{}[]-&*!|>\\n \"'#%@`x1", max_size=60).map(str.encode))
)
def test_any_config_file_is_read_or_refused(content: bytes) -> None:
    for flags in ({}, {"profile": "x"}, {"command_config": "c"}, {"worker_config": ("w",)}):
        with contextlib.suppress(EosctlError):
            resolve_target(flags, {}, files=GivenFiles(lambda _path: content))


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["connect", "client", "expect", "ca", "group_id", "token_env", "connect_url"]), inner
        )
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(TREES)
def test_any_profile_is_taken_or_refused(profile: Any) -> None:
    document = json.dumps({"profiles": {"p": profile}, "current": "p"}).encode()
    with contextlib.suppress(EosctlError):
        resolve_target({}, {}, files=GivenFiles(lambda _path: document))
