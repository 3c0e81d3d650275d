"""The folded config topic against what a real worker says of itself, through a connector's whole life."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eosctl.app import App
from eosctl.core.clients.settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.report import plain
from eosctl.sandbox.stack import Stack
from eosctl.target import Target
from eosctl.task_counts.gather import list_task_counts, replay_topic, show_task_counts, validate_task_counts
from tests.sandbox_fixtures import GROUP, PATIENCE_S, FileSource, rest, wait_until

pytestmark = pytest.mark.live


@pytest.fixture
def app(stack: Stack, tmp_path: Path) -> App:
    client = ClientSettings(bootstrap_servers=(stack.bootstrap_servers,))
    target = Target(client=client, connect_urls=(stack.urls(GROUP)[0],), group_id=GROUP)
    return App(target=target, deadline=Deadline.after(4 * PATIENCE_S), state_dir=tmp_path)


def connector_state(app: App, name: str) -> Any:
    state = plain(replay_topic(app).data.state)
    assert isinstance(state, dict)
    return state["connectors"].get(name)


def wait_until_as_rest_says(app: App, source: FileSource) -> None:
    """Config, tasks and target state of every connector, as the worker holds them once it has read the topic."""

    def agree() -> bool:
        state = plain(replay_topic(app).data.state)
        assert isinstance(state, dict)
        in_topic = {name: each for name, each in state["connectors"].items() if each["config"] is not None}
        told = {
            name: (answer["info"]["config"], sorted(task["task"] for task in answer["info"]["tasks"]))
            for name, answer in rest(f"{source.url}/connectors?expand=info").items()
        }
        connector = rest(f"{source.url}/connectors/{source.name}/status")["connector"]["state"]
        target = {"RUNNING": "STARTED"}.get(connector, connector)
        same = told == {name: (each["config"], each["task_ids"]) for name, each in in_topic.items()}
        return same and in_topic[source.name]["target_state"] == target

    wait_until(agree, what="the worker to say what the topic says")


def test_the_fold_follows_a_connector_from_its_creation_to_its_deletion(app: App, file_source: FileSource) -> None:
    name, task_id = file_source.name, f"{GROUP}-{file_source.name}-0"

    def row() -> Any:
        return plain(show_task_counts(app, name).rows[0])

    file_source.append("one")
    file_source.put()
    file_source.wait_running()
    wait_until(lambda: row()["alive_ids"] == [task_id], what="the task's transactional id to be listed")
    wait_until_as_rest_says(app, file_source)
    assert (row()["recorded"], row()["task_count"], row()["pending_fencing"], row()["findings"]) == (1, 1, False, [])
    assert connector_state(app, name)["task_config_generation"] == 0

    first_record = row()["record_offset"]
    file_source.put(**{"batch.size": "7"})
    wait_until(lambda: row()["record_offset"] > first_record, what="the record after a new config")
    file_source.wait_running()
    wait_until_as_rest_says(app, file_source)

    file_source.stop_and_wait()
    wait_until(lambda: row()["target_state"] == "STOPPED", what="the stop to be in the topic")
    wait_until_as_rest_says(app, file_source)
    assert (row()["task_count"], row()["pending_fencing"], row()["would_fence"]) == (0, True, [task_id])
    assert row()["findings"] == []

    file_source.set_state("resume")
    wait_until(lambda: row()["pending_fencing"] is False and row()["task_count"] == 1, what="the record after resume")
    file_source.wait_running()
    wait_until_as_rest_says(app, file_source)

    rest(f"{file_source.url}/connectors/{name}", "DELETE")
    wait_until(lambda: connector_state(app, name)["config"] is None, what="the deletion to be in the topic")
    left = connector_state(app, name)
    assert (left["target_state"], left["task_count"], left["task_count_record"]) == (None, None, 1)
    assert [finding["code"] for finding in row()["findings"]] == ["orphan"]


def test_a_healthy_group_has_no_warning_and_knows_its_connectors(app: App, file_source: FileSource) -> None:
    file_source.append("one")
    file_source.put()
    file_source.wait_running()
    wait_until(lambda: show_task_counts(app, file_source.name).rows[0].alive_ids, what="the id to be listed")
    report = list_task_counts(app)
    assert report.problems == []
    assert report.summary.checked_against_connect is True
    assert report.target["kafka_cluster_id"] == rest(file_source.url)["kafka_cluster_id"]
    assert validate_task_counts(app, strict=False).exit_code == 0
