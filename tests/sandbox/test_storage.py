"""A broker's storage: formatted once, copied then, and what is secret in it never leaves its stack."""

from __future__ import annotations

import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from eosctl.errors import EosctlError
from eosctl.machine.class_archive import KeptFile
from eosctl.sandbox.login import SecureListener
from eosctl.sandbox.servers.launcher import Launcher
from eosctl.sandbox.servers.process import storage_template
from eosctl.sandbox.settings import StackSpec
from eosctl.sandbox.stack import Stack

# StorageTool as far as it matters here: says that it ran, and formats the directory that the properties name
_TOOL = """#!{python}
import pathlib, sys
words = pathlib.Path(sys.argv[-1][1:]).read_text().split()
properties = pathlib.Path(words[words.index('"-c"') + 1].strip('"'))
config = dict(line.split("=", 1) for line in properties.read_text().splitlines() if "=" in line)
data = pathlib.Path(config["log.dirs"])
(data / "meta.properties").write_text("#\\n#now\\nnode.id=1\\n{directory}version=1\\ncluster.id=formatted\\n")
(data / "bootstrap.checkpoint").write_text("features " + " ".join(words))
with open(sys.argv[0] + ".runs", "a") as runs:
    runs.write(config["node.id"])
"""
Prepare = Callable[..., list[Path]]


@pytest.fixture
def tool(tmp_path: Path) -> Path:
    """A Java that runs nothing but this StorageTool, of Kafka 3.7 or newer."""
    return _java(tmp_path / "java", directory="directory.id=formatted\\n")


def _java(path: Path, *, directory: str) -> Path:
    path.write_text(_TOOL.format(python=sys.executable, directory=directory))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def runs(tool: Path) -> str:
    """The node ids whose storage the tool formatted, in order."""
    path = tool.with_name(f"{tool.name}.runs")
    return path.read_text() if path.exists() else ""


@pytest.fixture
def template(tmp_path: Path) -> KeptFile:
    return storage_template(tmp_path / "cache", "4.3.1", [Path("a.jar")])


@pytest.fixture
def prepare(tmp_path: Path, template: KeptFile) -> Prepare:
    """Prepares the brokers of another stack each time; their data directories."""

    def run(java: Path, spec: StackSpec) -> list[Path]:
        directory = tmp_path / f"stack-{len(list(tmp_path.glob('stack-*')))}"
        (directory / "secure").mkdir(parents=True)
        brokers = Launcher(java, directory, tmp_path / "cache").prepare_brokers(
            spec, template, f"cluster-{directory.name}"
        )
        return [Path(broker.config).with_name("data") for broker in brokers]

    return run


def _meta(data: Path) -> dict[str, str]:
    lines = (data / "meta.properties").read_text().splitlines()
    return dict(line.split("=") for line in lines if not line.startswith("#"))


def test_formatted_once_and_copied_then(tool: Path, prepare: Prepare, tmp_path: Path) -> None:
    """Each broker of each stack cost a JVM."""
    first = prepare(tool, StackSpec(brokers=3))
    second = prepare(tmp_path / "no-java", StackSpec(brokers=2))
    assert runs(tool) == "1"
    metas = [_meta(data) for data in (*first, *second)]
    assert [meta["node.id"] for meta in metas] == ["1", "2", "3", "1", "2"]
    assert len({meta["directory.id"] for meta in metas} - {"formatted"}) == 5
    assert [meta["cluster.id"] for meta in metas] == ["cluster-stack-0"] * 3 + ["cluster-stack-1"] * 2
    assert len({(data / "bootstrap.checkpoint").read_text() for data in (*first, *second)}) == 1


def test_a_kafka_without_directory_ids_gets_none(prepare: Prepare, tmp_path: Path) -> None:
    (data,) = prepare(_java(tmp_path / "old", directory=""), StackSpec())
    assert set(_meta(data)) == {"version", "node.id", "cluster.id"}


@pytest.mark.parametrize("with_template", [True, False], ids=["template", "none"])
def test_passwords_stay_in_their_stack(tool: Path, prepare: Prepare, template: KeptFile, with_template: bool) -> None:
    """StorageTool writes users into the storage: it runs once for all brokers of a stack, and nothing is kept."""
    if with_template:
        prepare(tool, StackSpec())
    kept = template.path()
    secured = prepare(tool, StackSpec(brokers=2, secure=SecureListener({"u": "p4ss"})))
    assert runs(tool) == "1" * (1 + with_template)
    assert all("password=p4ss" in (data / "bootstrap.checkpoint").read_text() for data in secured)
    assert list(template.folder.glob("*")) == ([kept] if kept else [])


def test_properties_that_only_one_stack_has_are_formatted_for_it(
    tool: Path, prepare: Prepare, template: KeptFile
) -> None:
    prepare(tool, StackSpec(broker_config={"unstable.feature.versions.enable": "true"}))
    assert template.path() is None
    prepare(tool, StackSpec())
    prepare(tool, StackSpec(broker_config={"unstable.feature.versions.enable": "true"}))
    assert runs(tool) == "111"


def test_a_template_that_breaks_off_is_made_anew(tool: Path, prepare: Prepare, template: KeptFile) -> None:
    prepare(tool, StackSpec())
    kept = template.path()
    assert kept is not None
    kept.write_bytes(kept.read_bytes()[:100])
    assert template.path() is None
    prepare(tool, StackSpec())
    assert runs(tool) == "11"
    assert template.path() is not None


def test_other_jars_are_another_kafka(tmp_path: Path) -> None:
    names = {storage_template(tmp_path, "4.3.1", [Path(jar)]).name for jar in ("a.jar", "b.jar")}
    assert len(names) == 2


def test_a_format_that_fails_says_why(prepare: Prepare, template: KeptFile) -> None:
    with pytest.raises(EosctlError, match="formatting the storage of broker-1 failed"):
        prepare(Path("/bin/false"), StackSpec())
    assert template.path() is None


@pytest.mark.live
def test_the_brokers_of_a_stack_know_which_one_they_are(three_brokers: Stack) -> None:
    """Real brokers start from copies: none would from a copy that kept another one's node id or directory id."""
    nodes = three_brokers.state.of_kind("broker")
    metas = [_meta(Path(node.config).with_name("data")) for node in nodes]
    assert [meta["node.id"] for meta in metas] == ["1", "2", "3"]
    assert len({meta["directory.id"] for meta in metas}) == 3
    assert len({meta["cluster.id"] for meta in metas}) == 1
