"""`eosctl exporter rules` and `dashboard`: each parses, calls one operation, returns its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..frame.options import Duration, EosctlCommand

if TYPE_CHECKING:
    from eosctl.report import Report


@click.command("rules", cls=EosctlCommand)
@click.option(
    "--job", default="eosctl", show_default=True, metavar="NAME", help="The scrape job of the exporters in Prometheus."
)
@click.option(
    "--offsets-still", type=Duration(), default="1h", show_default=True, metavar="DURATION",
    help="How long a running connector may write no offset before an alert.",
)  # fmt: skip
@click.option(
    "--label", "labels", multiple=True, metavar="NAME=VALUE", help="A label that every alert gets (repeatable)."
)
@click.option(
    "--format", "file_format", type=click.Choice(["rules", "prometheusrule"]), default="rules", show_default=True,
    help="A file for rule_files, or a PrometheusRule for Prometheus' operator on Kubernetes.",
)  # fmt: skip
def rules(*, job: str, offsets_still: float, labels: tuple[str, ...], file_format: str) -> Report:
    """Print alerting rules for Prometheus.

    Prints a rule file for `rule_files`: hanging transactions, last stable offsets that stand still, tasks that run
    without a transaction, fencing that will take longer than Connect waits, workers in different modes, transactions
    near their timeout or aborted again and again, offsets that do not move, and an exporter that collects nothing. The
    annotation `runbook` is the command that checks or fixes it; add -b and -g, or --profile. -o json has the alerts as
    rows. Needs no Kafka. Needs Prometheus 2.30.

    \b
    Example:
      eosctl exporter rules --job eosctl --label team=streaming > eosctl-rules.yml
      eosctl exporter rules --format prometheusrule > prometheusrule.yaml
    """
    from eosctl.exporter.alerts import RulesRequest, make_rules

    return make_rules(RulesRequest(job, offsets_still, labels, as_resource=file_format == "prometheusrule"))


@click.command("dashboard", cls=EosctlCommand)
@click.option("--title", metavar="TEXT", help="The title of the dashboard.")
def dashboard(*, title: str | None) -> Report:
    """Print a dashboard for Grafana.

    Prints JSON to import (Dashboards > New > Import), or to provision as a file. It has every metric of the exporter;
    the data source, the Connect group and the exporter are variables. Needs no Kafka. Needs Grafana 10.1.

    Example: eosctl exporter dashboard > eosctl-dashboard.json
    """
    from eosctl.exporter.dashboard import DEFAULT_TITLE, make_dashboard

    return make_dashboard(title or DEFAULT_TITLE)
