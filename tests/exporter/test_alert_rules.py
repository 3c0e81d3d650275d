"""`eosctl exporter rules`: made from the table of metrics; promtool accepts them, and each fires and resolves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from eosctl.exporter.alerts import ALERTS, Series
from eosctl.output.documents import yaml_text
from tests.conftest import GOLDEN, Invoke
from tests.envelope import envelope_of
from tests.exporter.alert_cases import CASES, RULES_FILE, promtool_document
from tests.prometheus.promtool import Promtool

TESTS_FILE = "exporter/rules_test.yml"


def test_the_file_is_the_one_that_is_kept(invoke: Invoke, golden: Callable[[str, str], None]) -> None:
    done = invoke("exporter", "rules")
    assert (done.exit_code, done.stderr) == (0, "")
    golden(RULES_FILE, done.stdout)
    golden(TESTS_FILE, yaml_text(promtool_document()))


def test_promtool_accepts_it(promtool: Promtool) -> None:
    done = promtool("check", "rules", "--lint=all", "--lint-fatal", str(GOLDEN / RULES_FILE))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"SUCCESS: {len(ALERTS)} rules found" in done.stdout


def test_each_alert_fires_and_resolves(promtool: Promtool) -> None:
    done = promtool("test", "rules", str(GOLDEN / TESTS_FILE))
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_has_a_case() -> None:
    assert {each.alert for each in CASES} == {each.name for each in ALERTS}


def test_a_name_is_one_word_of_the_printed_command(promtool: Promtool, tmp_path: Path) -> None:
    """Whoever names a connector can't put a command into a runbook."""
    expected = {
        "exp_labels": {"severity": "critical", "job": "eosctl", "instance": "e", "connector": "it's; x", "task": "0"},
        "exp_annotations": {
            "summary": "Task it's; x/0 runs without transactions",
            "description": next(each for each in ALERTS if each.name == "EosctlTaskWithoutTransaction").description,
            "runbook": r"eosctl connectors check --connector 'it'\''s; x'",
        },
    }
    labels = 'job="eosctl",instance="e",connector="it\'s; x",task="0"'
    series = {"series": f"eosctl_task_without_transaction_seconds{{{labels}}}", "values": "1x20"}
    test = {
        "interval": "30s",
        "input_series": [series],
        "alert_rule_test": [{"eval_time": "6m", "alertname": "EosctlTaskWithoutTransaction", "exp_alerts": [expected]}],
    }
    rules = str(GOLDEN / RULES_FILE)
    (tmp_path / "t.yml").write_text(yaml.safe_dump({"rule_files": [rules], "tests": [test]}))
    done = promtool("test", "rules", "t.yml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_words_and_a_command_that_exists(invoke: Invoke) -> None:
    for alert in ALERTS:
        assert alert.summary, alert.name
        assert alert.description.endswith("."), alert.name
        words = alert.runbook.split(" -")[0].split(" '")[0].split()
        assert words[0] == "eosctl", alert.name
        assert invoke(*words[1:], "--help").exit_code == 0, alert.runbook


def test_job_labels_and_the_time_without_offsets_are_options(invoke: Invoke) -> None:
    done = invoke(
        "exporter", "rules", "--job", 'a"b', "--label", "team=x", "--offsets-still", "5m", "-o", "json"
    )  # fmt: skip
    document = envelope_of(done, "exporter-rules")
    (group,) = document["data"]["rules"]["groups"]
    assert all('{job="a\\"b"' in rule["expr"] and rule["labels"]["team"] == "x" for rule in group["rules"])
    assert [row["alert"] for row in document["data"]["rows"]] == [rule["alert"] for rule in group["rules"]]
    assert "> 300 and" in next(row["expr"] for row in document["data"]["rows"] if "Offsets" in row["alert"])


@pytest.mark.parametrize("label", ["team", "1a=b", "a-b=c", "severity=x", "=x"])
def test_what_is_no_label_is_refused(invoke: Invoke, label: str) -> None:
    done = invoke("exporter", "rules", "--label", label)
    assert done.exit_code == 2
    assert f"--label {label}: not a label" in done.stderr


def test_a_metric_or_a_label_that_there_is_not_is_refused() -> None:
    series = Series("eosctl", 1)
    with pytest.raises(KeyError, match="eosctl_gone"):
        series("eosctl_gone")
    with pytest.raises(KeyError, match="has no label topic"):
        series("eosctl_up", topic="x")
