"""Checks whether the Kafka cluster answers, and which of its brokers do not. Reads only."""

from __future__ import annotations

from eosctl.app import App
from eosctl.collect.facts import KafkaFacts
from eosctl.collect.overview import Overview

BROKER_PATIENCE_S = 5.0


def look_at_kafka(app: App, _overview: Overview) -> KafkaFacts:
    """Find brokers that do not answer; raises the connection's error where none answers."""
    with app.transactions() as admin:
        cluster_id = admin.cluster_id()
        silent = admin.silent_brokers(patience_s=BROKER_PATIENCE_S)
    return KafkaFacts(cluster_id, tuple(sorted(silent)))
