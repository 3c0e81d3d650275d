"""`eosctl exporter dashboard`: every metric of the table, in a form that Grafana's own classes know.

The schema is Grafana's public one, as the classes that Grafana Labs generates from it (grafana-foundation-sdk, for
Grafana 10.1). A member that they don't know is lost when they read the dashboard; types are compared with theirs.
"""

from __future__ import annotations

import inspect
import json
import types
import typing
from enum import Enum
from typing import Any

import pytest

from eosctl.exporter.dashboard import ROWS, panel_metrics
from eosctl.exporter.metrics import METRICS
from tests.conftest import Invoke
from tests.envelope import envelope_of
from tests.prometheus.server import Prometheus


@pytest.fixture
def dashboard(invoke: Invoke) -> Any:
    done = invoke("exporter", "dashboard")
    assert (done.exit_code, done.stderr) == (0, "")
    return json.loads(done.stdout)


def panels(dashboard: Any) -> list[Any]:
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def faults(value: object, wanted: Any, path: str) -> list[str]:
    """Where a value that Grafana's classes have read is of another type than they declare."""
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    if wanted is Any or wanted is object:
        return []
    if origin in (typing.Union, types.UnionType):
        ways = [faults(value, each, path) for each in arguments]
        return min(ways, key=len)
    if origin is list:
        listed = value if isinstance(value, list) else None
        if listed is None:
            return [f"{path} is no list"]
        return [
            fault for number, each in enumerate(listed) for fault in faults(each, arguments[0], f"{path}[{number}]")
        ]
    if origin is typing.Literal:
        return [] if value in arguments else [f"{path} is {value!r}"]
    if origin is not None or not inspect.isclass(wanted):
        return []
    if issubclass(wanted, Enum):
        return [] if value in [each.value for each in wanted] or isinstance(value, wanted) else [f"{path} is {value!r}"]
    if wanted is float and isinstance(value, int):
        return []
    if not isinstance(value, wanted):
        return [f"{path} is a {type(value).__name__}, not a {wanted.__name__}"]
    return members(value, path) if wanted.__module__.startswith("grafana_foundation_sdk") else []


def members(value: object, path: str) -> list[str]:
    """The faults of each member of one of Grafana's objects."""
    declared: dict[str, Any] = {}
    for base in reversed(type(value).__mro__):
        declared |= typing.get_type_hints(base) if base is not object else {}
    return [
        fault
        for name, each in vars(value).items()
        if name in declared
        for fault in faults(each, declared[name], f"{path}.{name}")
    ]


def lost(given: Any, read: Any, path: str = "$") -> list[str]:
    """What is in the dashboard and not in what Grafana's classes made of it."""
    if isinstance(given, dict):
        if not isinstance(read, dict):
            return [path]
        absent = [f"{path}.{key}" for key in given if key not in read and given[key] not in (None, [])]
        return absent + [x for key in given if key in read for x in lost(given[key], read[key], f"{path}.{key}")]
    if isinstance(given, list):
        if not isinstance(read, list) or len(given) != len(read):
            return [path]
        return [x for number, each in enumerate(given) for x in lost(each, read[number], f"{path}[{number}]")]
    return [] if given == read else [path]


def read_by_grafana(document: Any) -> tuple[Any, Any]:
    from grafana_foundation_sdk.cog import runtime
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models import prometheus, stat, table, timeseries
    from grafana_foundation_sdk.models.dashboard import Dashboard

    runtime.register_dataquery_variant(prometheus.variant_config())
    for kind in (stat, table, timeseries):
        runtime.register_panelcfg_variant(kind.variant_config())
    read = Dashboard.from_json(document)
    return read, json.loads(json.dumps(read, cls=JSONEncoder))


def test_grafanas_classes_read_all_of_it(dashboard: Any) -> None:
    read, again = read_by_grafana(dashboard)
    assert lost(dashboard, again) == []
    assert members(read, "$") == []


def test_what_grafana_does_not_know_is_seen(dashboard: Any) -> None:
    dashboard["panels"][1]["sparkles"] = 1
    dashboard["panels"][1]["fieldConfig"]["defaults"]["unitt"] = "s"
    dashboard["schemaVersion"] = "38"
    read, again = read_by_grafana(dashboard)
    assert lost(dashboard, again) == ["$.panels[1].sparkles", "$.panels[1].fieldConfig.defaults.unitt"]
    assert members(read, "$") == ["$.schema_version is a str, not a int"]


def test_every_metric_is_shown_once() -> None:
    assert sorted(panel_metrics()) == sorted(each.name for each in METRICS)


def test_panels_do_not_overlap_and_have_a_place(dashboard: Any) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        taken |= cells
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)


def test_each_panel_says_what_it_shows_and_asks_for_the_chosen_exporters(dashboard: Any) -> None:
    for panel in panels(dashboard):
        assert panel["description"].endswith("."), panel["title"]
        for target in panel["targets"]:
            assert 'instance=~"$instance"' in target["expr"], panel["title"]
            assert target["datasource"]["uid"] == "${datasource}"
    assert [row["title"] for row in dashboard["panels"] if row["type"] == "row"] == [row.title for row in ROWS]


def test_prometheus_understands_every_query(dashboard: Any, prometheus: Prometheus) -> None:
    for panel in panels(dashboard):
        for target in panel["targets"]:
            assert prometheus.query(target["expr"].replace("$__rate_interval", "5m")) == {}, panel["title"]


def test_the_data_source_the_group_and_the_exporter_are_variables(dashboard: Any) -> None:
    assert [each["name"] for each in dashboard["templating"]["list"]] == ["datasource", "group", "instance"]


def test_it_is_a_document_with_a_title(invoke: Invoke) -> None:
    document = envelope_of(invoke("exporter", "dashboard", "--title", "Mine", "-o", "json"), "exporter-dashboard")
    assert document["data"]["dashboard"]["title"] == "Mine"
    assert document["data"]["summary"]["panels"] == len(panels(document["data"]["dashboard"]))
