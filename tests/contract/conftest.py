"""What the modules of the contract share: the cluster of a parameter, for a whole module."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.contract.clusters import Subject, subject_of


@pytest.fixture(scope="module")
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    """Parametrized by each module, by `pytest.mark.parametrize("subject", …, indirect=True)`."""
    with subject_of(request.param, request) as found:
        yield found


@pytest.fixture
def name() -> str:
    """An id, topic or group that nobody else uses."""
    return f"contract-{uuid.uuid4().hex[:10]}"
