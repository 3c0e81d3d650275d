"""The table of Kafka's classes beside the jars of its releases, and Kafka's own plugins on the next release."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from eosctl.machine.java import require_java
from eosctl.plugins.archives import read_plugin
from eosctl.plugins.kafka_classes import KAFKA, known_classes
from eosctl.plugins.relist import public_classes, read_release
from eosctl.plugins.rules import judge_plugin
from eosctl.sandbox.downloads.jars import ca_file, cache_dir, ensure_jars, proxy_options
from eosctl.sandbox.settings import read_lock, supported_versions

pytestmark = pytest.mark.live  # what is not in the cache is fetched
TABLE = known_classes()
_NOT_IN_A_WORKER = {"connect-test-plugins"}


@cache
def jars_of(version: str) -> Mapping[str, Path]:
    """Kafka's own jars of a release, by artifact."""
    jars = [each for each in read_lock(version) if (each.group, each.version) == ("org.apache.kafka", version)]
    paths = ensure_jars(
        jars, cache=cache_dir(os.environ), java=require_java(os.environ), on_event=lambda _event: None,
        maven_url=os.environ.get("EOSCTL_MAVEN_URL"), java_options=proxy_options(os.environ),
        ca_file=ca_file(os.environ),
    )  # fmt: skip
    return {jar.artifact: path for jar, path in zip(jars, paths, strict=True)}


@pytest.mark.parametrize("version", supported_versions())
def test_the_table_agrees_with_the_jars(version: str) -> None:
    """In both directions for kafka-clients; a worker has more than the jars of a sandbox that has brokers alone."""
    assert version in TABLE.releases
    jars = {name: path for name, path in jars_of(version).items() if name not in _NOT_IN_A_WORKER}
    release = read_release(jars.values())
    public = public_classes(release)
    assert [name for name in public if TABLE.has(name, version) is not True] == []
    within = (
        f"{KAFKA}common/",
        f"{KAFKA}clients/",
        f"{KAFKA}connect/" if "connect-runtime" in jars else f"{KAFKA}clients/",
    )
    listed = {name for name in TABLE.classes if name.startswith(within) and TABLE.has(name, version)}
    published = {name.rpartition("/")[0] for name in public}
    assert {name for name in listed if name.rpartition("/")[0] in published} - public.keys() == set()
    wrong = [
        (owner, member)
        for owner, member in TABLE.members
        if owner in public and member in public[owner].visible and TABLE.lacks_member(owner, member, version)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("artifact", "release", "missing"),
    [
        ("connect-file", "4.4.0", {"error": ["AppInfoParser"]}),
        ("connect-mirror", "4.4.0", {"error": ["AppInfoParser"], "warning": ["Exit"]}),
        ("connect-test-plugins", "4.4.0", {"error": ["AppInfoParser"]}),
        ("connect-file", "4.3.1", {}),
        ("connect-mirror", "4.3.1", {}),
        ("connect-basic-auth-extension", "4.4.0", {"error": ["AppInfoParser"]}),
    ],
)
def test_kafkas_own_plugins_of_4_3_on_another_release(
    tmp_path: Path, artifact: str, release: str, missing: dict[str, list[str]]
) -> None:
    """On workers of 4.4.0 each of these dies with NoClassDefFoundError (KAFKA-20297)."""
    shutil.copy(jars_of("4.3.1")[artifact], tmp_path)
    (jar,) = tmp_path.glob("*.jar")
    found: dict[str, list[str]] = {}
    for finding in judge_plugin(read_plugin(jar), TABLE, release, release):
        rows = finding.evidence.get("missing", [])
        assert isinstance(rows, list)
        for row in rows:
            found.setdefault(finding.severity, []).append(row["name"].rpartition(".")[2])
    assert found == missing
