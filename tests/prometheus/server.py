"""A Prometheus on loopback that evaluates every second, scrapes every two, and is asked by its HTTP API."""

from __future__ import annotations

import json
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from eosctl.sandbox.servers import process
from eosctl.sandbox.servers.process import take_ports
from tests.prometheus.programs import Programs

_START_S = 300.0
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True)
class Alert:
    """One that is pending or firing, with its labels and annotations."""

    name: str
    state: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


@dataclass(frozen=True)
class Prometheus:
    """A running one; what it scrapes and the rules are those of the last `load`."""

    url: str
    folder: Path

    def load(self, targets: Sequence[str], rules: str = "", *, job: str = "eosctl", **scrape: object) -> None:
        """Scrapes these addresses (host:port) from now on, with the text of these rules; `scrape` is added as it is."""
        (self.folder / "rules.yml").write_text(rules)
        config = _config(targets, job, scrape)
        (self.folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        self._ask("/-/reload", method="POST")

    def alerts(self) -> list[Alert]:
        """Those that are pending or firing now."""
        found = self._data("/api/v1/alerts")["alerts"]
        return [
            Alert(each["labels"].pop("alertname"), each["state"], each["labels"], each["annotations"]) for each in found
        ]

    def query(self, expression: str) -> dict[tuple[tuple[str, str], ...], float]:
        """The samples of an instant query, by their sorted labels."""
        found = self._data(f"/api/v1/query?{urllib.parse.urlencode({'query': expression})}")["result"]
        return {tuple(sorted(each["metric"].items())): float(each["value"][1]) for each in found}

    def target_errors(self) -> dict[str, str]:
        """The last error of each target by its instance; "" where the last scrape went well."""
        found = self._data("/api/v1/targets?state=active")["activeTargets"]
        return {each["labels"]["instance"]: each["lastError"] for each in found if each["health"] != "unknown"}

    def _data(self, path: str) -> Any:
        return json.loads(self._ask(path))["data"]

    def _ask(self, path: str, *, method: str = "GET") -> bytes:
        with _direct.open(urllib.request.Request(self.url + path, method=method), timeout=_START_S) as answer:
            return bytes(answer.read())


def _config(targets: Sequence[str], job: str, scrape: Mapping[str, object]) -> dict[str, object]:
    scraped = {"job_name": job, "static_configs": [{"targets": list(targets)}], **scrape}
    return {
        "global": {"scrape_interval": "2s", "evaluation_interval": "1s", "scrape_timeout": "2s"},
        "rule_files": ["rules.yml"],
        "scrape_configs": [scraped] if targets else [],
    }


@contextmanager
def running_prometheus(programs: Programs, folder: Path, ports: Path) -> Iterator[Prometheus]:
    """One that scrapes nothing yet, until the block ends; `ports` is where free ports are agreed on."""
    folder.mkdir()
    (port,) = take_ports(1, folder=ports, owner=folder)
    server = Prometheus(f"http://127.0.0.1:{port}", folder)
    (folder / "rules.yml").write_text("")
    (folder / "prometheus.yml").write_text(yaml.safe_dump(_config((), "eosctl", {})))
    words = [
        str(programs.prometheus),
        "--config.file=prometheus.yml",
        "--storage.tsdb.path=data",
        f"--web.listen-address=127.0.0.1:{port}",
        "--web.enable-lifecycle",
        "--log.level=warn",
    ]
    log = folder / "log.txt"
    started = process.spawn(words, log=log, directory=folder, environ={"GOMAXPROCS": "1"})
    try:
        _await(server, started, log)
        yield server
    finally:
        process.stop([started], grace_s=10)


def _await(server: Prometheus, started: process.ProcessId, log: Path) -> None:
    until_s = time.monotonic() + _START_S
    while True:
        try:
            server._ask("/-/ready")
        except OSError as exc:
            if time.monotonic() > until_s or not started.alive():
                told = log.read_text(errors="replace")[-1500:]
                raise RuntimeError(f"Prometheus did not start: {exc}\n{told}") from exc
            time.sleep(0.1)
        else:
            return
