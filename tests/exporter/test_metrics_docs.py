"""docs/metrics.md: made from the tables of metrics and alerts, and as they are now."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from eosctl.collect.looks import sources
from eosctl.exporter.alerts import ALERTS, Series
from eosctl.exporter.metrics import METRICS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
HEAD = """\
# Metrics and alerts

What `eosctl exporter` serves, and what `eosctl exporter rules` makes of it. Made from the tables of metrics and alerts
by `pytest --update-golden`. How to run it: [run the exporter](how-to/run-the-exporter.md).
"""
METRICS_HEAD = """\
## Metrics

A series is there as long as its subject is; what is not known has none, and is never 0. Of metrics that say so, the
`--top` worst subjects have series of their own, and one series with the label values `other` stands for the rest.
`eosctl_build_info` has the version.
"""
ALERTS_HEAD = """\
## Alerts

As printed by `eosctl exporter rules`. The runbook is the command that checks or fixes it, with -b and -g or a profile.
"""


def page() -> str:
    return "\n".join([HEAD, METRICS_HEAD, *_metrics(), "", *_sources(), "", ALERTS_HEAD, *_alerts()])


def _metrics() -> Iterator[str]:
    yield "| metric | type | labels | meaning |"
    yield "| --- | --- | --- | --- |"
    for each in METRICS:
        labels = ", ".join(f"`{label}`" for label in each.labels)
        yield f"| `{each.name}` | {each.type} | {labels} | {each.help} |"


def _sources() -> Iterator[str]:
    yield "The sources, each looked at by itself (`source`); intervals are multiples of `--interval`:"
    yield ""
    yield "| source | intervals | deadline |"
    yield "| --- | --- | --- |"
    for each in sources():
        yield f"| {each.name} | {each.every} | {each.deadline_s:g} s |"


def _alerts() -> Iterator[str]:
    series = Series("eosctl", 3600)
    for each in ALERTS:
        held = f", for {each.hold_s // 60} min" if each.hold_s else ""
        yield f"### {each.name}\n"
        yield f"{each.severity}{held}: {_plain(each.summary)}.\n"
        yield f"{_plain(each.description)}\n"
        yield f"```\n{each.expr(series)}\n```\n"
        yield f"Runbook: `{_plain(each.runbook)}`\n"


def _plain(text: str) -> str:
    """Templates as a person reads them: the label's or the value's name."""
    text = re.sub(r"'\{\{ reReplaceAll .* \$labels\.(\w+)\) \}\}'", lambda found: found[1].upper(), text)
    text = re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda found: found[1].upper(), text)
    return re.sub(r"\{\{ \$value[^}]*\}\}", "N", text)


def test_the_page_is_current(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page()


def test_names_follow_the_conventions() -> None:
    for each in METRICS:
        assert re.fullmatch(r"eosctl_[a-z_]+", each.name), each.name
        assert (each.type == "counter") == each.name.endswith("_total"), each.name
        assert (each.type == "info") == each.name.endswith("_info"), each.name
        assert (each.unit == "seconds") == each.name.endswith("_seconds"), each.name
    assert len({each.name for each in METRICS}) == len(METRICS)


def test_helps_are_sentences() -> None:
    for each in METRICS:
        assert re.match(r"[A-Z1]", each.help), each.name
        assert each.help.endswith("."), each.name
        assert "  " not in each.help, each.name
