"""Codes of the problems of profiles and settings files."""

from __future__ import annotations

from eosctl.codes import warning

JAVA_REFUSES = warning(
    "java_refuses",
    "A settings file is good enough for eosctl, and Kafka's own clients and Connect's workers do not start with it.",
    "Change the setting as the message says, where a Java client reads the same file.",
)
