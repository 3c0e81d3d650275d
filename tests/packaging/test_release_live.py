"""The files of a release, as whoever takes them has them: in an empty environment, without a home, without a network.

Live, for the packages that eosctl needs come from an index.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.pairs import installed_eosctl
from eosctl.sandbox.stack import Stack
from tests.packaging.conftest import ROOT, Release, make_release
from tests.packaging.pythons import FOR, pythons
from tests.sandbox_fixtures import GROUP, group_flags
from tools.release import make_packages, tool_environment

pytestmark = pytest.mark.live
PYTHON = str(ROOT / ".venv-release" / "bin" / "python")


def run(words: Sequence[str | Path], home: Path) -> subprocess.CompletedProcess[str]:
    """Runs it from `/` with nothing of this environment but a home."""
    environ = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    return subprocess.run(words, cwd="/", env=environ, capture_output=True, text=True)


def index() -> dict[str, str]:
    """pip's own settings of this machine, without which it may reach no index."""
    return {name: value for name, value in os.environ.items() if name.startswith("PIP_") or "proxy" in name.lower()}


def test_every_file_has_its_sum(release: Release) -> None:
    lines = [line.split("  ") for line in release.file("SHA256SUMS").read_text().splitlines()]
    listed = {name: digest for digest, name in lines}
    files = {path.name: path for path in release.folder.iterdir() if path.name != "SHA256SUMS"}
    assert listed == {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    artefacts = {name for name in files if not name.endswith(".cdx.json")}
    assert sorted(Path(name).suffix for name in artefacts) == [".gz", ".pyz", ".whl"]
    assert files.keys() == artefacts | {f"{name}.cdx.json" for name in artefacts}


def test_the_sboms_name_what_is_pinned(release: Release) -> None:
    """The tool that makes them holds them against CycloneDX's schema; the sums are those of the lists."""
    text = (ROOT / "requirements" / "eosctl.txt").read_text()
    for path in release.folder.glob("*.cdx.json"):
        document = json.loads(path.read_text())
        artefact = path.with_name(path.name.removesuffix(".cdx.json"))
        (digest,) = document["metadata"]["component"]["hashes"]
        assert digest == {"alg": "SHA-256", "content": hashlib.sha256(artefact.read_bytes()).hexdigest()}
        assert {"click", "confluent-kafka", "msgspec", "pyarrow"} <= {each["name"] for each in document["components"]}
        for each in document["components"]:
            assert f"{each['name'].lower().replace('_', '-')}=={each['version']} " in text
            hashes = [hashed["content"] for hashed in each.get("hashes", [])]
            assert len(hashes) == (artefact.suffix == ".pyz")
            assert all(f"--hash=sha256:{content}" in text for content in hashes)
        assert str(release.folder.parent) not in path.read_text()


@pytest.mark.slow
def test_made_again_elsewhere_it_is_the_same(release: Release, tmp_path: Path) -> None:
    """Of the .pyz too: see below. No umask, time or folder is in a file."""
    out = tmp_path / "out"
    out.mkdir()
    before = os.umask(0o077)
    try:
        made = make_packages(tool_environment(), release.commit, tmp_path / "elsewhere" / "eosctl", out)
    finally:
        os.umask(before)
    assert [path.read_bytes() for path in made] == [release.file(path.name).read_bytes() for path in made]


@pytest.mark.slow
def test_the_whole_release_made_again_is_the_same(release: Release, tmp_path: Path) -> None:
    make_release(release.commit, tmp_path / "again")
    assert (tmp_path / "again" / "SHA256SUMS").read_text() == release.file("SHA256SUMS").read_text()


def test_the_wheel_of_the_tree_is_that_of_the_source_archive(release: Release, tmp_path: Path) -> None:
    """`build` makes the wheel of the source archive: nothing that the tree has for it is missing there."""
    packed = subprocess.run(["git", "archive", release.commit], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    (tmp_path / "tree").mkdir()
    subprocess.run(["tar", "--extract"], cwd=tmp_path / "tree", input=packed, check=True)
    words = [PYTHON, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(tmp_path / "tree")]
    subprocess.run(words, check=True, capture_output=True, cwd=tmp_path)
    wheel = release.file("*.whl")
    mine, of_archive = zipfile.ZipFile(tmp_path / wheel.name), zipfile.ZipFile(wheel)
    assert mine.namelist() == of_archive.namelist()
    assert all(mine.read(name) == of_archive.read(name) for name in mine.namelist())


def test_wheel_carries_commands_locks_and_completions(release: Release) -> None:
    names = zipfile.ZipFile(release.file("*.whl")).namelist()
    assert "eosctl/commands/frame/root.py" in names
    assert "eosctl/py.typed" in names
    assert "eosctl/plugins/kafka-classes.txt" in names
    assert any(name.startswith("eosctl/sandbox/") and name.endswith(".lock") for name in names)
    for end in ("completions/eosctl.bash", "site-functions/_eosctl", "vendor_completions.d/eosctl.fish"):
        assert any(name.endswith(end) for name in names), end
    assert not [name for name in names if name.startswith(("tests/", "commands/", "tools/"))]
    with tarfile.open(release.file("*.tar.gz")) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"CHANGELOG.md", "SECURITY.md", "requirements/eosctl.txt", "deploy/exporter/kustomization.yaml"} <= inside
    assert not [name for name in inside if name.startswith(("tests", "tools", "."))]


@pytest.mark.parametrize(
    "version",
    [pytest.param(each, marks=() if path == sys.executable else pytest.mark.slow) for each, path in pythons().items()],
)
def test_wheel_runs_from_the_root_directory(release: Release, tmp_path: Path, version: str) -> None:
    """Installed with its dependencies into an empty environment, the script and every sub-command's help work."""
    environment = tmp_path / "venv"
    subprocess.run([pythons()[version], "-m", "venv", "--without-pip", str(environment)], check=True)
    pip = [PYTHON, "-m", "pip", "--python", str(environment / "bin" / "python"), "install", "--no-compile"]
    pinned = ["--require-hashes", "--no-deps", "--requirement", str(ROOT / "requirements" / "eosctl.txt")]
    subprocess.run([*pip, *pinned], check=True, capture_output=True)
    wheel = str(release.file("*.whl"))
    subprocess.run([*pip, "--no-index", wheel], check=True, capture_output=True)  # nothing was missing
    script = environment / "bin" / "eosctl"
    assert run([script, "--version"], tmp_path).stdout == "eosctl, version 1.0.0\n"
    tree = json.loads(run([script, "schema", "-o", "json"], tmp_path).stdout)
    assert tree["data"]["summary"]["kinds"] > 50
    for words in (["demo"], ["fence"], ["offsets", "list"], ["sandbox", "up"], ["task-counts", "list"], ["doctor"]):
        done = run([script, *words, "--help"], tmp_path)
        assert done.returncode == 0, (words, done.stderr)
    refused = run([script, "fence", "x", "-b", "127.0.0.1:1"], tmp_path)
    assert (refused.returncode, "Traceback" in refused.stderr) == (4, False), refused.stderr
    completions = environment / "share" / "bash-completion" / "completions" / "eosctl.bash"
    assert completions.read_text() == (ROOT / "completions" / "eosctl.bash").read_text()


@pytest.mark.slow
def test_pipx_runs_the_wheel(release: Release, tmp_path: Path) -> None:
    """By the file: no index has eosctl. It installs what the test before has installed, without the sums."""
    environ = {**index(), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "PIPX_DEFAULT_PYTHON": sys.executable}
    words = [PYTHON, "-m", "pipx", "run", "--spec", str(release.file("*.whl")), "eosctl", "--version"]
    done = subprocess.run(words, cwd="/", env=environ, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "eosctl, version 1.0.0\n"), done.stderr


@pytest.fixture
def offline() -> list[str]:
    """What runs a program without a network, where this user may do that."""
    words = ["unshare", "--net", "--map-root-user"]
    allowed = shutil.which("unshare") and subprocess.run([*words, "true"], capture_output=True).returncode == 0
    return words if allowed else []


@pytest.fixture
def bare(tmp_path: Path) -> list[str]:
    """A Python without pip and without anything of the user's."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    return [str(tmp_path / "bare" / "bin" / "python"), "-I"]


def test_the_one_file_needs_no_network_no_pip_and_no_home(
    release: Release, tmp_path: Path, offline: list[str], bare: list[str]
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    program = [*offline, *bare, str(release.file("*.pyz"))]
    assert run([*program, "--version"], home).stdout == "eosctl, version 1.0.0\n"
    assert run([*program, "doctor", "--help"], home).returncode == 0
    rules = run([*program, "exporter", "rules", "--format", "prometheusrule"], home)
    assert rules.stdout == (ROOT / "deploy" / "exporter" / "prometheusrule.yaml").read_text()
    refused = run([*program, "fence", "x", "-b", "127.0.0.1:1", "-o", "json"], home)
    assert (refused.returncode, json.loads(refused.stdout)["errors"][0]["code"]) == (4, "unreachable")
    assert [path.name for path in home.iterdir()] == [".shiv"]  # where it is unpacked
    without_jars = run([*program, "demo"], home)
    assert (without_jars.returncode, "pip install" in without_jars.stderr) == (1, False)


def test_the_one_file_looks_at_a_real_group(
    release: Release, newest_stack: Stack, tmp_path: Path, bare: list[str]
) -> None:
    words = [*bare, str(release.file("*.pyz")), "workers", "list", *group_flags(newest_stack, GROUP), "-o", "json"]
    done = run(words, tmp_path)
    assert done.returncode == 0, done.stderr
    assert [row["mode"] for row in json.loads(done.stdout)["data"]["rows"]] == ["enabled"]


def test_the_one_file_names_the_python_that_it_is_made_for(release: Release, tmp_path: Path) -> None:
    """Under another one: its packages are of one Python, and would end in an ImportError."""
    pyz = str(release.file("*.pyz"))
    another = f"import runpy, sys; sys.version_info = (3, 99, 0, 'final', 0); runpy.run_path({pyz!r}, None, '__main__')"
    done = run([sys.executable, "-I", "-c", another, "--version"], tmp_path)
    assert (done.returncode, done.stdout) == (78, "")
    assert f"for CPython {sys.version_info[0]}.{sys.version_info[1]} on Linux" in done.stderr


@pytest.mark.slow
def test_the_one_file_of_other_pythons(release: Release, tmp_path: Path) -> None:
    """It is made without them; those of this machine run it."""
    others = {version: path for version, path in pythons().items() if path != sys.executable}
    make_release(release.commit, tmp_path / "out", *(word for version in FOR for word in ("--python", version)))
    assert len([*(tmp_path / "out").glob("*.pyz")]) == len(FOR)
    for version, path in others.items():
        (pyz,) = (tmp_path / "out").glob(f"*-py{version.replace('.', '')}-*.pyz")
        assert run([path, "-I", pyz, "--version"], tmp_path).stdout == "eosctl, version 1.0.0\n"
        refused = run([path, "-I", pyz, "fence", "x", "-b", "127.0.0.1:1"], tmp_path)
        assert refused.returncode == 4, refused.stderr


def test_what_benchmarks_install_leaves_nothing_in_the_checkout(tmp_path: Path) -> None:
    """A folder `build` stayed there, which later builds took old modules from."""
    built = (ROOT / "build").exists()
    done = subprocess.run([installed_eosctl(tmp_path), "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout.split(",")[0]) == (0, "eosctl")
    assert (ROOT / "build").exists() == built
