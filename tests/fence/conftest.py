"""Ids to fence, and who else may use them."""

from __future__ import annotations

import pytest

from tests.fakes.fence_stage import Stage, fence_stage


@pytest.fixture
def stage() -> Stage:
    """Ids g-c-0 (empty), g-c-1 (a transaction is open on t-0), g-d-0 and a leader's; two brokers."""
    return fence_stage()
