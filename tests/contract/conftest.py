"""What the modules of the contract share: the cluster of a parameter, for a whole module, and Connect groups."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from eosctl.core.clients.settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.kafka.topics.store import KafkaTopicClient
from eosctl.kafka.transactions.admin import NativeTransactionAdmin
from eosctl.ports import TopicClient
from eosctl.sandbox.stack import Stack
from tests.contract.clusters import Subject, subject_of
from tests.contract.groups import Group, fake_group, real_group, revive
from tests.sandbox_fixtures import TWO_WORKERS, added_group


@pytest.fixture(scope="module")
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    """Parametrized by each module, by `pytest.mark.parametrize("subject", …, indirect=True)`."""
    with subject_of(request.param, request) as found:
        yield found


@pytest.fixture(scope="module")
def store(subject: Subject) -> Iterator[TopicClient]:
    with subject.store(timeout_s=300) as found:
        yield found


@pytest.fixture
def name() -> str:
    """An id, topic or group that nobody else uses."""
    return f"contract-{uuid.uuid4().hex[:10]}"


@pytest.fixture(scope="session")
def old_pair(request: pytest.FixtureRequest) -> Iterator[Stack]:
    """Two workers of Kafka 3.9.2, as those of `pair`."""
    stack: Stack = request.getfixturevalue("old_stack")
    with added_group(stack, TWO_WORKERS):
        yield stack


@pytest.fixture(
    params=[
        "fake",
        pytest.param("pair", marks=(pytest.mark.live, pytest.mark.on("pair"))),
        pytest.param("old_pair", marks=(pytest.mark.live, pytest.mark.slow, pytest.mark.on("old_stack"))),
    ]
)
def group(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Group]:
    """Two workers without connectors."""
    if request.param == "fake":
        made = fake_group()
        yield made
        made.clear()
        return
    stack: Stack = request.getfixturevalue(request.param)
    settings = ClientSettings((stack.bootstrap_servers,))
    with (
        NativeTransactionAdmin(settings, deadline=Deadline.after(300)) as admin,
        KafkaTopicClient(settings, deadline=Deadline.after(300)) as topics,
    ):
        made = real_group(stack, admin, topics, tmp_path)
        made.wait(lambda: len(made.members()) == 2, "two members")
        try:
            yield made
        finally:
            revive(made)
        made.clear()
