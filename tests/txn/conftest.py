"""Transactions to look at and to end."""

from __future__ import annotations

import pytest

from tests.fakes.txn_stage import Stage, txn_stage


@pytest.fixture
def stage() -> Stage:
    """g-c-0 idle; g-c-1 with an open transaction on t-0 and t-1; a leader; something else."""
    return txn_stage()
