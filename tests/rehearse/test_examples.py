"""What docs/how-to/rehearse-a-connector.md says is there: its configs, its faults, its command lines, its job."""

from __future__ import annotations

import re
import shlex
import zipfile

import pytest
import yaml

from eosctl.rehearse.faults import ALL_FAULTS
from eosctl.rehearse.rows import FaultVerdict
from eosctl.rehearse.rules import GivenConnector, fit_connector
from tests.conftest import Invoke
from tests.rehearse.rehearsing import DOCUMENT, TABLE_SOURCE, documented

LINES = [
    line
    for block in re.findall(r"^```console\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
]


@pytest.mark.parametrize("name", ["clicks", "mirror", "orders"])
def test_the_examples_may_be_rehearsed(name: str) -> None:
    document = documented(name)
    found = fit_connector(GivenConnector(name, document["config"]), brokers=1, kafka_version=(4, 3))
    assert found.outside
    assert "example.com" not in str(found.config_at("127.0.0.1:1", {}))


def test_faults_and_verdicts_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| `([a-z_-]+)` \|", DOCUMENT, re.MULTILINE)
    assert rows == [*(kind.name for kind in ALL_FAULTS), *_verdicts()]


def _verdicts() -> list[str]:
    told = re.findall(r"^\| `([a-z_]+)` \|", DOCUMENT, re.MULTILINE)[-len(FaultVerdict) :]
    assert set(told) == set(FaultVerdict)
    return told


@pytest.mark.parametrize("line", sorted(set(LINES)))
def test_command_lines_are_taken(invoke: Invoke, line: str) -> None:
    words = shlex.split(line)
    assert words[:2] == ["$", "eosctl"]
    outcome = invoke(*words[2:], "--help")
    assert outcome.exit_code == 0
    known = outcome.stdout
    assert [word for word in words if word.startswith("--") and word not in known] == []


def test_the_job_runs_what_there_is(invoke: Invoke) -> None:
    (text,) = re.findall(r"^```yaml\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL)
    steps = yaml.safe_load(text)["jobs"]["rehearse"]["steps"]
    (command,) = [step["run"] for step in steps if "eosctl rehearse" in step.get("run", "")]
    words = shlex.split(command.partition(" > ")[0].replace("\\\n", " "))
    known = invoke("rehearse", "--help").stdout + invoke("--help-all").stdout
    assert [word for word in words if word.startswith("-") and word not in known] == []
    uploaded = next(step["with"]["path"] for step in steps if "upload" in step.get("uses", ""))
    assert uploaded.split() == ["rehearsal.html", "rehearsal.json"]


def test_the_table_source_is_compiled_from_what_lies_beside_it() -> None:
    """No compiler is needed where the tests run: whoever changes the source has to make the jar anew."""
    with zipfile.ZipFile(TABLE_SOURCE / "table-source.jar") as jar:
        assert jar.read("eosctl/tests/TableSource.java") == (TABLE_SOURCE / "TableSource.java").read_bytes()
