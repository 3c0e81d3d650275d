"""What Prometheus has to have seen for each alert, when the alert fires then, and when it does not; for promtool."""

from __future__ import annotations

from dataclasses import dataclass

RULES_FILE = "exporter/rules.yml"
_AT = 'job="eosctl",instance="e:9618"'


@dataclass(frozen=True, slots=True)
class AlertCase:
    """`series` -> values, a sample each 30 s (promtool's notation); `labels` are those of the alert that fires."""

    alert: str
    series: dict[str, str]
    fires_at: str
    quiet_at: tuple[str, ...]
    labels: str
    severity: str = "warning"
    of_exporter: bool = True


CASES = (
    AlertCase(
        "EosctlHangingTransaction",
        {'eosctl_transaction_hanging_seconds{topic="t",partition="0",producer_id="7"}': "900+30x20 stale"},
        "6m", ("4m", "11m"), 'topic="t",partition="0",producer_id="7"', "critical",
    ),
    AlertCase(
        "EosctlTransactionNotEnded",
        {
            'eosctl_transaction_ending_seconds{owner="task",connector="c",task="0",transactional_id="g-c-0"}':
                "0 30 60 90 120 stale",
            'eosctl_transaction_ending_seconds{owner="other",connector="",task="",transactional_id="a-*"}': "0x40",
        },
        "2m", ("1m", "6m"), 'owner="task",connector="c",task="0",transactional_id="g-c-0"', "critical",
    ),
    AlertCase(
        "EosctlLastStableOffsetStuck",
        {
            'eosctl_topic_lso_stuck_seconds{topic="t",kind="output"}': "0+30x30 0x20",
            'eosctl_topic_lso_stuck_seconds{topic="of many partitions",kind="output"}': "30 60 90 30+0x60",
        },
        "11m", ("9m", "16m"), 'topic="t",kind="output"',
    ),
    AlertCase(
        "EosctlTaskWithoutTransaction",
        {'eosctl_task_without_transaction_seconds{connector="c",task="0"}': "_ 0+30x20 stale"},
        "7m", ("5m", "12m"), 'connector="c",task="0"', "critical",
    ),
    AlertCase(
        "EosctlFencingTooLong",
        {
            'eosctl_fencing_limit_seconds{wait="forward"}': "30x60",
            'eosctl_fencing_limit_seconds{wait="round"}': "90x60",
            'eosctl_workers{mode="enabled"}': "1x9 2x50",
            'eosctl_fencing_round_seconds{connector="c"}': "50x19 5x40",
            'eosctl_fencing_round_seconds{connector="quick"}': "29x60",
        },
        "6m", ("4m", "11m"), 'connector="c"', "critical",
    ),
    AlertCase(
        "EosctlMixedModes",
        {'eosctl_workers{mode="enabled"}': "1x70 2x20", 'eosctl_workers{mode="disabled"}': "1x70 stale"},
        "31m", ("29m", "36m"), "",
    ),
    AlertCase(
        "EosctlMixedModes",
        {'eosctl_workers{mode="enabled"}': "1x70 2x20", 'eosctl_workers{mode="not_enabled"}': "1x70 stale"},
        "31m", ("29m", "36m"), "",
    ),
    AlertCase(
        "EosctlTransactionNearTimeout",
        {
            'eosctl_transaction_open_seconds{owner="task",connector="c",task="0",transactional_id="g-c-0"}':
                "10 40 70 20 50",
            'eosctl_transaction_timeout_seconds{owner="task",connector="c",task="0",transactional_id="g-c-0"}': "60x9",
            'eosctl_collection_age_seconds{source="transactions"}': "0 0 0 0 29",
            'eosctl_collection_age_seconds{source="group"}': "0x9",
        },
        "1m", ("30s", "90s", "2m"), 'owner="task",connector="c",task="0",transactional_id="g-c-0"',
    ),
    AlertCase(
        "EosctlTransactionsAborted",
        {'eosctl_transactions_aborted_total{connector="c"}': "1 1 1 2 2 2 3 4x100",
         'eosctl_transactions_aborted_total{connector="other"}': "0+9x100"},
        "4m", ("2m", "22m"), 'connector="c"',
    ),
    AlertCase(
        "EosctlTransactionsAborted",
        {
            'eosctl_transactions_aborted_total{connector="c"}': "0x4 5x100",
            'eosctl_transactions_aborted_total{connector="away for 6 minutes"}': "10x60 stale _x10 10x60",
            'eosctl_transactions_aborted_total{connector="not scraped for 12 minutes"}': "10x60 _x24 10x60",
        },
        "3m", ("30s", "19m", "37m", "42m", "48m"), 'connector="c"',
    ),
    AlertCase(
        "EosctlOffsetsNotMoving",
        {
            'eosctl_source_offset_age_seconds{connector="c"}': "3590+30x40 10x9",
            'eosctl_connector_tasks_running{connector="c"}': "1x99",
            'eosctl_source_offset_age_seconds{connector="stopped"}': "9000+30x99",
            'eosctl_connector_tasks_running{connector="stopped"}': "0x99",
        },
        "16m", ("15m", "21m"), 'connector="c"',
    ),
    AlertCase("EosctlExporterDown", {"up": "0x20 1x20"}, "6m", ("4m", "11m"), "", "critical"),
    AlertCase(
        "EosctlExporterDown", {'up{job="another"}': "1x20"}, "6m", ("4m",), 'job="eosctl"', "critical",
        of_exporter=False,
    ),
    AlertCase(
        "EosctlDiskNearlyFull",
        {
            'eosctl_log_dir_usable_bytes{broker="1",log_dir="/d"}': "6 4x20 5x20",
            'eosctl_log_dir_total_bytes{broker="1",log_dir="/d"}': "100x50",
            'eosctl_log_dir_usable_bytes{broker="2",log_dir="/d"}': "500x50",
            'eosctl_log_dir_total_bytes{broker="2",log_dir="/d"}': "1000x50",
        },
        "6m", ("5m", "11m"), 'broker="1",log_dir="/d"',
    ),
    AlertCase(
        "EosctlLogDirFailed",
        {'eosctl_log_dir_failed{broker="1",log_dir="/d"}': "0 1x20 0x9",
         'eosctl_log_dir_failed{broker="2",log_dir="/d"}': "0x30"},
        "1m", ("0", "11m"), 'broker="1",log_dir="/d"', "critical",
    ),
    AlertCase("EosctlKafkaUnreachable", {"eosctl_up": "1 0x20 1x20"}, "6m", ("5m", "11m"), "", "critical"),
    AlertCase(
        "EosctlCollectionFailing",
        {'eosctl_collection_success{source="group"}': "0x40 1x20", 'eosctl_collection_success{source="kafka"}': "1x60"},
        "16m", ("14m", "21m"), 'source="group"',
    ),
    AlertCase(
        "EosctlCollectionStale",
        {
            'eosctl_collection_interval_seconds{source="group"}': "60x60",
            'eosctl_collection_age_seconds{source="group"}': "400x20 10x30",
            'eosctl_collection_error{source="group",code="stale"}': "_ 1x20 stale",
            'eosctl_collection_interval_seconds{source="failing"}': "60x60",
            'eosctl_collection_age_seconds{source="failing"}': "400x60",
            'eosctl_collection_error{source="failing",code="unreachable"}': "1x60",
        },
        "6m", ("4m", "11m"), 'source="group"',
    ),
    AlertCase(
        "EosctlCollectionIncomplete",
        {
            'eosctl_collection_unseen{source="transactions"}': "2x40 0x20",
            'eosctl_collection_unseen{source="group"}': "0x60",
        },
        "16m", ("14m", "21m"), 'source="transactions"',
    ),
    AlertCase(
        "EosctlNoWorker",
        {'eosctl_workers{mode="enabled"}': "2x9 stale _x20 1x40", 'eosctl_collection_success{source="group"}': "1x99"},
        "11m", ("4m", "9m", "17m"), "", "critical",
    ),
    AlertCase("EosctlWorkerDown", {'eosctl_worker_up{worker="w:8083"}': "0x20 1x20"}, "6m", ("4m", "11m"),
              'worker="w:8083"'),
    AlertCase(
        "EosctlFindings",
        {'eosctl_findings{code="wrong_type",severity="error"}': "1x20 0x20",
         'eosctl_findings{code="few_replicas",severity="warning"}': "1x40"},
        "6m", ("4m", "11m"), 'code="wrong_type"',
    ),
)  # fmt: skip


def promtool_document() -> dict[str, object]:
    """All cases as one file for `promtool test rules`."""
    return {
        "rule_files": [RULES_FILE.rpartition("/")[2]],
        "evaluation_interval": "30s",
        "tests": [_test(case) for case in CASES],
    }


def _test(case: AlertCase) -> dict[str, object]:
    asked = f'ALERTS{{alertname="{case.alert}",alertstate="firing"}}'
    found = [each for each in (case.labels, _AT if case.of_exporter else "") if each]
    labels = ",".join([f'alertname="{case.alert}",alertstate="firing",severity="{case.severity}"', *found])
    fires = {"expr": asked, "eval_time": case.fires_at, "exp_samples": [{"labels": f"ALERTS{{{labels}}}", "value": 1}]}
    return {
        "name": f"{case.alert}: {', '.join(case.series)}",
        "interval": "30s",
        "input_series": [
            {"series": _at_exporter(name) if case.of_exporter else name, "values": values}
            for name, values in case.series.items()
        ],
        "promql_expr_test": [fires, *({"expr": asked, "eval_time": time} for time in case.quiet_at)],
    }


def _at_exporter(series: str) -> str:
    name, brace, labels = series.partition("{")
    return f"{name}{{{_AT}}}" if not brace else f"{name}{{{_AT},{labels}"
