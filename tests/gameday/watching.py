"""An exporter of the game's group, scraped by a real Prometheus that has the printed rules, only quicker."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from eosctl.sandbox.servers.process import take_ports
from tests.gameday.ground import Ground
from tests.prometheus.server import Prometheus
from tests.sandbox_fixtures import PATIENCE_S, wait_until

INTERVAL = "2s"
STILL_S = 15
"""For how long a running source of these tests writes no offset before that is an alert."""
_WINDOW_S = 20


@dataclass
class Watching:
    """The exporter as a process of its own; `seen` are the alerts that ever fired, by name."""

    ground: Ground
    prometheus: Prometheus
    port: int
    log: Path
    process: subprocess.Popen[bytes] | None = None
    took_s: dict[str, tuple[float, float]] = field(default_factory=dict)

    def start(self) -> None:
        """Starts the exporter, and waits until it was scraped."""
        words = ["exporter", "--listen", f"127.0.0.1:{self.port}", "--interval", INTERVAL]
        config = {"XDG_CONFIG_HOME": str(self.ground.folder / "config"), "XDG_STATE_HOME": str(self.ground.folder)}
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "eosctl", *words], env={**os.environ, **config}, stdin=subprocess.DEVNULL,
                stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
        wait_until(lambda: self.prometheus.query('eosctl_up{job="eosctl"}'), what="the exporter to be scraped")

    def stop(self) -> int:
        """Ends it as systemd does; its exit code."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(PATIENCE_S)

    def firing(self, alert: str, **labels: str) -> bool:
        """Whether the alert fires now, with these labels; not that of an exporter before, which Prometheus may keep."""
        found = [each for each in self.prometheus.alerts() if each.name == alert and each.state == "firing"]
        wanted = {"instance": f"127.0.0.1:{self.port}", **labels}
        return any(wanted.items() <= {"instance": wanted["instance"], **each.labels}.items() for each in found)

    @contextmanager
    def fires(self, *alerts: str, **labels: str) -> Iterator[None]:
        """Each of the alerts fires before the block begins, and has ended some time after it: the block heals."""
        began_s = time.monotonic()
        fired_s = {alert: self._wait(alert, labels, firing=True) - began_s for alert in alerts}
        yield
        began_s = time.monotonic()
        for alert in alerts:
            self.took_s[alert] = (fired_s[alert], self._wait(alert, labels, firing=False) - began_s)
            print(f"{alert} {labels} | fired {fired_s[alert]:.1f} s | resolved {self.took_s[alert][1]:.1f} s")

    def _wait(self, alert: str, labels: dict[str, str], *, firing: bool) -> float:
        what = f"{alert} {labels} to {'fire' if firing else 'resolve'}"
        try:
            wait_until(lambda: self.firing(alert, **labels) is firing, what=what)
        except pytest.fail.Exception:
            print(*self.prometheus.alerts(), self.log.read_text()[-2000:], sep="\n")  # what there was instead
            raise
        return time.monotonic()


def quickened(rules: str) -> str:
    """The printed rules, which fire after a second instead of minutes, and forget after 20 seconds."""
    return (
        re.sub(r"(lso_stuck_seconds\{[^}]*\} > )\d+", r"\g<1>1", re.sub(r"\bfor: \d+s", "for: 1s", rules))
        .replace("[15m]", f"[{_WINDOW_S}s]")
        .replace("offset 15m", f"offset {_WINDOW_S}s")
    )


@contextmanager
def watched(ground: Ground, prometheus: Prometheus, ports: Path) -> Iterator[Watching]:
    """The exporter runs, and Prometheus scrapes it with the rules that eosctl prints."""
    (port,) = take_ports(1, folder=ports, owner=ground.folder)
    rules = ground.invoke("exporter", "rules", "--offsets-still", f"{STILL_S}s").stdout
    prometheus.load([f"127.0.0.1:{port}"], quickened(rules))
    watching = Watching(ground, prometheus, port, ground.folder / "exporter.log")
    try:
        watching.start()
        yield watching
    finally:
        if watching.process is not None and watching.process.poll() is None:
            watching.process.kill()
            watching.process.wait()
        prometheus.load([])
