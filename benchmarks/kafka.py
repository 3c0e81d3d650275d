"""Kafka's own jars for the Java contestants."""

from __future__ import annotations

import os
from pathlib import Path

from eosctl.events import ignore_events
from eosctl.java import Java
from eosctl.sandbox.jars import ca_file, cache_dir, ensure_jars
from eosctl.sandbox.lock import DEFAULT_VERSION, read_lock


def kafka_jars(java: Java) -> list[Path]:
    """The jars of the newest supported Kafka, fetched as the sandbox fetches them."""
    return ensure_jars(
        read_lock(DEFAULT_VERSION),
        cache=cache_dir(os.environ),
        java=java,
        maven_url=os.environ.get("EOSCTL_MAVEN_URL"),
        on_event=ignore_events,
        ca_file=ca_file(os.environ),
    )
