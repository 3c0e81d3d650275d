"""Debian's package: fetched once, whole or not at all, and a reason where it can't be had."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from tests.prometheus.programs import NotHereError, kept_programs
from tests.prometheus.promtool import Promtool
from tests.prometheus.server import Prometheus


def _fake_tool(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose programs come before this machine's."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def _package(machine: Path) -> None:
    """dpkg-deb unpacks two programs from whatever was fetched."""
    unpack = 'mkdir -p "$3/usr/bin" && : >"$3/usr/bin/promtool" && : >"$3/usr/bin/prometheus"'
    _fake_tool(machine, "dpkg-deb", unpack)


def test_it_is_fetched_once_and_kept_by_its_sha256(machine: Path, tmp_path: Path) -> None:
    _package(machine)
    _fake_tool(machine, "apt-get", f"echo fetch >>'{tmp_path}/asked'; printf package >prometheus_1_amd64.deb")
    first = kept_programs(tmp_path / "cache")
    assert kept_programs(tmp_path / "cache") == first
    assert first.promtool.exists()
    assert first.prometheus.exists()
    assert first.promtool.parts[-4] == hashlib.sha256(b"package").hexdigest()
    assert (tmp_path / "asked").read_text() == "fetch\n"


def test_without_package_lists_it_fetches_lists_of_its_own(machine: Path, tmp_path: Path) -> None:
    _package(machine)
    update = '*Lists=*" update") : >lists-there;;'
    download = '*" download "*) [ -e lists-there ] && : >prometheus_1_amd64.deb;;'
    _fake_tool(machine, "apt-get", f'case "$*" in {update} {download} *) exit 100;; esac')
    assert kept_programs(tmp_path / "cache").promtool.exists()


def test_what_breaks_off_leaves_nothing_and_is_a_reason(machine: Path, tmp_path: Path) -> None:
    _fake_tool(machine, "apt-get", "echo no network >&2; exit 100")
    with pytest.raises(NotHereError, match="no network"):
        kept_programs(tmp_path / "cache")
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [".lock"]


def test_a_machine_without_apt_gets_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotHereError, match="nor apt-get"):
        kept_programs(tmp_path / "cache")


def test_promtool_refuses_what_is_no_metric(promtool: Promtool) -> None:
    assert promtool("check", "metrics", input="# TYPE a counter\na 1\n").returncode != 0


def test_a_server_evaluates_and_is_reloaded(prometheus: Prometheus) -> None:
    assert prometheus.query("vector(3)") == {(): 3.0}
    prometheus.load([])
    assert prometheus.alerts() == []
