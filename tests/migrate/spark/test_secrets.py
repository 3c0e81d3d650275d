"""Passwords travel in task closures: not in Spark's conf, its event log, its own log, or what a failing task says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CANARY = "canary-618-password"
PROGRAM = """
import sys
from pathlib import Path
from eosctl.core.clients.settings import ClientSettings, Secret
from eosctl.core.offsets.migration import PlannedTopic
from eosctl.core.records import Bounds
from eosctl.errors import EosctlError
from eosctl.migrate.spark.job import MigrationJob
from eosctl.migrate.spark.session import spark_context
from tests.quick_spark import quick_settings

folder, secret = Path(sys.argv[1]), sys.argv[2][::-1]
conf = {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false"}
conf["spark.eventLog.dir"] = (folder / "events").as_uri()
login = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "NO-SUCH", "sasl_password": Secret(secret)}
client = ClientSettings(("127.0.0.1:1",), **login)
with spark_context(quick_settings(folder, master="local[1]", conf=conf)) as context:
    job = MigrationJob(context, client, others={"old": client})
    for name in ("t", "t@old"):
        try:
            job.snapshot([PlannedTopic(name, "id", 1, 1, (Bounds(0, 0, 1, 1),))], folder / "source")
        except EosctlError as exc:
            print(exc.message)
    assert secret not in str(context.getConf().getAll())
    assert context._jvm.System.getenv("EOSCTL_CONNECT_TOKEN") is None
"""


@pytest.mark.spark
def test_no_password_is_left_anywhere(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), CANARY[::-1]]  # not in a command line either
    environ = {**os.environ, "EOSCTL_CONNECT_TOKEN": CANARY}
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False, env=environ)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("NO-SUCH") == 2, "the tasks were given the client's settings"
    written = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert any(b"SparkListenerJobEnd" in content for content in written.values()), "there is no event log"
    for path, content in {**written, Path("stdout"): (done.stdout + done.stderr).encode()}.items():
        assert CANARY.encode() not in content, path
