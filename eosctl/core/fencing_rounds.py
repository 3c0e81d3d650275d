"""A fencing round of Connect's leader: its time limits, its effect on the ids, and how to speed it up."""

from __future__ import annotations

from collections.abc import Mapping

ROUND_S = 90.0
"""The time limit of a leader's fencing round (`RestServer.DEFAULT_REST_REQUEST_TIMEOUT_MS`)."""
ROUND_TIMEOUTS_MS = frozenset({90_000, 1})
"""The transaction timeouts that a round leaves on the ids it fences; tasks leave 60000, eosctl 30000.

Workers before Kafka 3.7.1 send 1 (KAFKA-16047).
"""
FENCING_FAILED = "Failed to perform zombie fencing"
"""The beginning of a task's failure whose leader did not finish its round."""
CURE: Mapping[str, str] = {
    "admin.override.retry.backoff.ms": "10",
    "admin.override.retry.backoff.max.ms": "10",
}
"""Settings of a connector with which Connect fences a hundred ids per second, so that it needs no rescue again."""
