"""Secrets in configs, and what is shown in their place. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from eosctl.core.java.properties import parse_properties
from eosctl.core.wording import encodable
from eosctl.errors import InputFileError

_SECRET_NAME = re.compile(
    r"password|passwd|passphrase|\bpwd\b|\bpass\b|secret|token|credential|jaas|webhook|connection[._-]?string"
    r"|(api|access|account|encryption|master|private|shared|signing|ssl)[._-]?.*key",
    re.I,
)
_SECRET_IN_URL = re.compile(r"(?<=://)[^/@\s]+:[^/@\s]+(?=@)")
_NAMED = re.compile(r"""([\w.-]+)(?:\s*=|["']\s*:)\s*""")


def hide_secrets(config: Mapping[str, object]) -> dict[str, object]:
    """A connector's config fit to be shown: values under secret-sounding names are `***`, `${…}` references are not."""
    return {encodable(name): shown_value(name, value) for name, value in config.items()}


def shown_line(line: str) -> str:
    """A line of a log, fit to be shown: all that stands behind `NAME=` of a secret is `***`."""
    for found in _NAMED.finditer(line):
        if _SECRET_NAME.search(found[1]) and found.end() < len(line):
            return shown_line(line[: found.start()]) + found[0] + "***"
    return encodable(_SECRET_IN_URL.sub("***", line))


def holds_secrets(body: object) -> bool:
    """Whether JSON has a string of properties, among which is what `hide_secrets` hides, or that can't be read."""
    if isinstance(body, Mapping):
        return any(holds_secrets(each) for each in body.values())
    if isinstance(body, list):
        return any(holds_secrets(each) for each in body)
    if not isinstance(body, str):
        return False
    try:
        values = parse_properties(body, source="text").values
    except InputFileError:
        return True
    return hide_secrets(values) != values


def shown_value(name: str, value: object) -> object:
    """The value of one setting, fit to be shown."""
    if not isinstance(value, str):
        return value
    if _SECRET_NAME.search(name) and not (value.startswith("${") and value.endswith("}")):
        return "***"
    return encodable(_SECRET_IN_URL.sub("***", value))
