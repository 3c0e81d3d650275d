"""A client's settings file on the command line: what is said of it, and when."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import Invoke
from tests.fakes.broker import FakeCluster


def test_what_librdkafka_gets_another_value_for_is_said_under_v_only(invoke: Invoke, tmp_path: Path) -> None:
    """Such a file used to end every command that needs librdkafka: `value 600000 is outside allowed range`."""
    file = tmp_path / "client.properties"
    with FakeCluster() as cluster:
        servers = ",".join(f"PLAINTEXT://{server}" for server in cluster.bootstrap_servers)
        file.write_text(f"bootstrap.servers={servers}\nrequest.timeout.ms=600000\nclient.dns.lookup=default\n")
        quiet, verbose = (invoke("fence", "a-1", "-y", "--command-config", str(file), *more) for more in ((), ("-v",)))
    assert "librdkafka" not in quiet.stderr
    assert [line for line in verbose.stderr.splitlines() if "librdkafka" in line] == [
        f"{file}:2: request.timeout.ms=600000: librdkafka does not take it, and uses 300000",
        f"{file}:3: client.dns.lookup=default: librdkafka does not take it, and uses its default",
    ]
