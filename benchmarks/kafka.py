"""Kafka's own jars for the Java contestants."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from eosctl.deadline import ignore_events
from eosctl.machine.java import Java
from eosctl.sandbox.downloads.jars import ca_file, cache_dir, ensure_jars
from eosctl.sandbox.settings import DEFAULT_VERSION, read_lock

CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"


def kafka_jars(java: Java) -> list[Path]:
    """Return the jars of the newest supported Kafka, fetched as the sandbox fetches them."""
    return ensure_jars(
        read_lock(DEFAULT_VERSION),
        cache=cache_dir(os.environ),
        java=java,
        maven_url=os.environ.get("EOSCTL_MAVEN_URL"),
        on_event=ignore_events,
        ca_file=ca_file(os.environ),
    )


def compile_java(source: Path, *, java: Java, class_path: str, directory: Path) -> None:
    """Compile a contestant into `directory`; end the benchmark where there is no compiler."""
    compiler = java.home / "bin" / "javac"
    if not compiler.exists():
        sys.exit(f"this benchmark compiles a Java program, and {java.home} has no javac; set JAVA_HOME to a JDK")
    subprocess.run([compiler, "-cp", class_path, "-d", str(directory), str(source)], check=True)
