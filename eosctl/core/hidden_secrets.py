"""Secrets in configs, and what is shown in their place. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from eosctl.core.wording import encodable

_SECRET_NAME = re.compile(
    r"password|passwd|passphrase|\bpwd\b|\bpass\b|secret|token|credential|jaas|webhook|connection[._-]?string"
    r"|(api|access|account|encryption|master|private|shared|signing|ssl)[._-]?.*key",
    re.I,
)
_SECRET_IN_URL = re.compile(r"(?<=://)[^/@\s]+:[^/@\s]+(?=@)")


def hide_secrets(config: Mapping[str, object]) -> dict[str, object]:
    """A connector's config fit to be shown: values under secret-sounding names are `***`, `${…}` references are not."""
    return {encodable(name): shown_value(name, value) for name, value in config.items()}


def shown_value(name: str, value: object) -> object:
    """The value of one setting, fit to be shown."""
    if not isinstance(value, str):
        return value
    if _SECRET_NAME.search(name) and not (value.startswith("${") and value.endswith("}")):
        return "***"
    return encodable(_SECRET_IN_URL.sub("***", value))
