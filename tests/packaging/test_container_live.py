"""deploy/container/Containerfile: its steps in roots of Debian, without an engine; what they leave is asked as a user.

Slow: debootstrap fetches and unpacks a Debian.
"""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT, Release
from tests.packaging.container_steps import Image, build, debian, steps

RECIPE = ROOT / "deploy" / "container" / "Containerfile"
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")


def test_nothing_unpinned_is_installed_and_it_is_not_root() -> None:
    """What comes from an index has its sha256; what has none is the released wheel, and the index is not asked."""
    found = steps(RECIPE.read_text())
    installs = re.findall(r"pip install [^&]*", " ".join(rest for word, rest in found if word == "RUN"))
    assert len(installs) == 2
    options = [set(each.split()) for each in installs]
    assert [bool(each & {"--require-hashes"}) for each in options] == [True, False]
    assert options[1] >= {"--no-index", "--no-deps"}
    assert [rest for word, rest in found if word == "USER"] == ["10001:10001"]
    assert "ADD" not in {word for word, _ in found}
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    named = re.findall(r"eosctl-(\d\S*?)-py3-none-any\.whl", RECIPE.read_text())
    assert set(named) == {version}


def reaches_indexes(root: Path) -> Mapping[str, str]:
    """Gives a root this machine's names, certificates and sources of packages; an engine's has its own."""
    for name in ("etc/resolv.conf", "etc/hosts"):
        shutil.copy(f"/{name}", root / name)
    sources = root / "etc" / "apt"
    for path in Path("/etc/apt/sources.list.d").glob("debian.sources"):
        (sources / "sources.list").unlink(missing_ok=True)
        shutil.copy(path, sources / "sources.list.d")
    if AUTHORITIES.exists():
        (root / "etc" / "tests-ca.crt").write_bytes(AUTHORITIES.read_bytes())
    proxies = {name: value for name, value in os.environ.items() if "proxy" in name.lower()}
    index = {name: value for name, value in os.environ.items() if name in ("PIP_INDEX_URL", "PIP_DEFAULT_TIMEOUT")}
    return {**proxies, **index, "PIP_CERT": "/etc/tests-ca.crt", "DEBIAN_FRONTEND": "noninteractive"}


@pytest.fixture(scope="session")
def image(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Image:
    folder = tmp_path_factory.mktemp("container")
    context = folder / "context"
    shutil.copytree(ROOT / "requirements", context / "requirements")
    shutil.copytree(release.folder, context / "dist")
    return build(RECIPE.read_text(), context, debian(folder), reaches_indexes)


@pytest.mark.live
@pytest.mark.root
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_its_steps_make_an_eosctl_that_runs_as_nobody_much(image: Image) -> None:
    said = image.run([*image.entrypoint, "--version"])
    assert (said.returncode, said.stdout) == (0, "eosctl, version 1.0.0\n"), said.stderr
    refused = image.run([*image.entrypoint, "fence", "x", "-b", "127.0.0.1:1", "-o", "json"])
    assert (refused.returncode, '"unreachable"' in refused.stdout) == (4, True), refused.stderr
    assert image.run(["id", "-u"]).stdout == "10001\n"
    assert image.run(["test", "-w", "/opt/eosctl"]).returncode == 1
    for tool in ("pip", "gcc", "/opt/eosctl/bin/pip"):
        assert image.run(["sh", "-c", f"command -v {tool}"]).returncode != 0, tool
    assert image.run(["python3", "-c", "import pip"]).returncode == 1


@pytest.mark.live
@pytest.mark.root
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_its_user_may_write_where_kubernetes_puts_its_state(image: Image) -> None:
    """A volume with `fsGroup` is root's, and its group's, which may write."""
    state = image.root / "state"
    state.mkdir(exist_ok=True)
    os.chown(state, 0, 10001)
    state.chmod(0o2775)
    image.environ |= {"XDG_STATE_HOME": "/state", "XDG_CONFIG_HOME": "/state"}
    written = image.run([*image.entrypoint, "profile", "set", "a", "bootstrap_server=127.0.0.1:1"])
    assert written.returncode == 0, written.stderr
    shown = image.run([*image.entrypoint, "history", "-o", "json"])
    assert shown.returncode == 0, shown.stderr
