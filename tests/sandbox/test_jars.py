"""Jars: the lock file's form, and a repository that serves something else."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from eosctl.deadline import Event, ignore_events
from eosctl.errors import EosctlError, UnreachableError, UsageError
from eosctl.machine.java import Java, require_java
from eosctl.sandbox.downloads.jars import cache_dir, ensure_jars, proxy_options
from eosctl.sandbox.downloads.relock import lock_text, root_coordinates
from eosctl.sandbox.settings import DEFAULT_VERSION, Jar, connectors_version, parse_lock, read_lock, supported_versions


def test_every_supported_version_has_a_complete_lock() -> None:
    """Of 4.4.0 there were brokers only: its sandbox had workers of 4.3.1."""
    for version in supported_versions():
        versions = {jar.artifact: jar.version for jar in read_lock(version)}
        needed = ("kafka_2.13", "kafka-clients", "connect-runtime", "connect-api", "connect-json", "kafka-tools")
        assert {versions[name] for name in needed} == {version}
        assert {versions["connect-file"], versions["connect-mirror"]} == {connectors_version(version)}
    assert {v: connectors_version(v) for v in supported_versions() if connectors_version(v) != v} == {"4.4.0": "4.3.1"}
    assert next(iter(supported_versions())) == "4.4.0"
    assert next(v for v in supported_versions() if connectors_version(v) == v) == DEFAULT_VERSION


def test_an_unknown_version_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"no Kafka 2\.8\.0") as caught:
        read_lock("2.8.0")
    assert DEFAULT_VERSION in str(caught.value.hint)


@pytest.mark.parametrize(
    "line", ["a:b 00 1", "a:b:1 xyz 1", f"a:b:1 {'0' * 64}", f"a:b:1 {'0' * 64} 1 2", f"a:b:1:c {'0' * 64} 1"]
)
def test_a_bad_lock_line_is_named(line: str) -> None:
    with pytest.raises(ValueError, match="line 2"):
        parse_lock(f"a:b:1 {'0' * 64} 7\n{line}\n")


def test_cache_directory() -> None:
    assert cache_dir({"EOSCTL_CACHE": "/x", "XDG_CACHE_HOME": "/y"}) == Path("/x")
    assert cache_dir({"XDG_CACHE_HOME": "/y"}) == Path("/y/eosctl")
    assert cache_dir({}) == Path.home() / ".cache" / "eosctl"


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, []),
        ({"no_proxy": "a"}, []),
        ({"http_proxy": "http://p:3128"}, ["-Dhttp.proxyHost=p", "-Dhttp.proxyPort=3128"]),
        ({"HTTPS_PROXY": "p:8"}, ["-Dhttps.proxyHost=p", "-Dhttps.proxyPort=8"]),
        (
            {"https_proxy": "http://u:w@p", "NO_PROXY": "localhost, .corp"},
            ["-Dhttps.proxyHost=p", "-Dhttps.proxyPort=80", "-Dhttp.nonProxyHosts=localhost|*.corp"],
        ),
    ],
)
def test_java_is_told_about_the_proxy(environ: dict[str, str], expected: list[str]) -> None:
    """Java does not read $https_proxy: fetching hung where pip had worked."""
    assert proxy_options(environ) == expected


def put(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(content)


def test_a_new_lock_reads_back(tmp_path: Path) -> None:
    for name in ("org/example/thing/1.0/thing-1.0.jar", "io/e/other/2-1/other-2-1.jar"):
        put(tmp_path / name, name)
    first, second = parse_lock(lock_text(tmp_path))
    assert (first.group, first.file_name) == ("io.e", "other-2-1.jar")
    assert (second.group, second.file_name, second.size) == ("org.example", "thing-1.0.jar", 35)
    assert second.sha256 == hashlib.sha256(b"org/example/thing/1.0/thing-1.0.jar").hexdigest()


def test_a_jar_that_a_lock_cannot_name_is_no_part_of_one(tmp_path: Path) -> None:
    put(tmp_path / "io/e/native/2/native-2-linux-x86_64.jar", "")
    with pytest.raises(ValueError, match=r"native-2-linux-x86_64\.jar has a classifier"):
        lock_text(tmp_path)


@pytest.mark.parametrize("version", supported_versions())
def test_the_lock_holds_what_relock_would_ask_for(version: str) -> None:
    held = {f"{jar.group}:{jar.artifact}:{jar.version}" for jar in read_lock(version)}
    assert set(root_coordinates(version)) <= held


@pytest.fixture
def repository(tmp_path: Path) -> tuple[str, Jar]:
    """A Maven repository on disk with one jar."""
    content = b"not really a jar"
    folder = tmp_path / "repository" / "org" / "example" / "thing" / "1.0"
    folder.mkdir(parents=True)
    (folder / "thing-1.0.jar").write_bytes(content)
    jar = Jar("org.example", "thing", "1.0", hashlib.sha256(content).hexdigest(), len(content))
    return (tmp_path / "repository").as_uri(), jar


@pytest.mark.live
def test_fetch_once_then_from_the_cache(tmp_path: Path, repository: tuple[str, Jar]) -> None:
    url, jar = repository
    events: list[Event] = []
    java = require_java(os.environ)
    killed = tmp_path / "cache" / "jars" / "fetch-killed"
    killed.mkdir(parents=True)
    for _ in range(2):
        (path,) = ensure_jars([jar], cache=tmp_path / "cache", java=java, maven_url=url, on_event=events.append)
        assert path.read_bytes() == b"not really a jar"
    assert len(events) == 1
    assert not killed.exists()
    for other in (b"cut", b"NOT really a jar"):  # of the right size, it was run
        path.write_bytes(other)
        ensure_jars([jar], cache=tmp_path / "cache", java=java, maven_url=url, on_event=events.append)
        assert path.read_bytes() == b"not really a jar"


def test_a_jar_of_the_right_size_with_other_bytes_is_not_run(tmp_path: Path, repository: tuple[str, Jar]) -> None:
    url, jar = repository
    path = tmp_path / "cache" / "jars" / jar.sha256[:16] / jar.file_name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not really A jar")
    unable = Java(Path("/bin/false"), "a Java that fetches nothing")
    with pytest.raises(UnreachableError):
        ensure_jars([jar], cache=tmp_path / "cache", java=unable, maven_url=url, on_event=ignore_events)


@pytest.mark.live
def test_a_wrong_sha256_installs_nothing(tmp_path: Path, repository: tuple[str, Jar]) -> None:
    url, jar = repository
    wrong = Jar(jar.group, jar.artifact, jar.version, "0" * 64, jar.size)
    with pytest.raises(EosctlError, match=r"thing-1\.0\.jar: sha256 .* nothing was installed"):
        ensure_jars(
            [wrong], cache=tmp_path / "cache", java=require_java(os.environ), maven_url=url, on_event=ignore_events
        )
    assert not list((tmp_path / "cache").rglob("*.jar"))


@pytest.mark.live
@pytest.mark.parametrize("url", ["file:///no/such/repository", "http://127.0.0.1:1/repository"])
def test_an_unreachable_repository_names_the_way_out(tmp_path: Path, repository: tuple[str, Jar], url: str) -> None:
    _url, jar = repository
    with pytest.raises(UnreachableError, match=r"could not fetch 1 of 1 jars") as caught:
        ensure_jars([jar], cache=tmp_path / "c", java=require_java(os.environ), maven_url=url, on_event=ignore_events)
    assert "EOSCTL_MAVEN_URL" in str(caught.value.hint)
