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
_HOST = r"(?:[\w.-]+|\[[0-9a-f:.]+\])(?::\d+|\(\d+\))?"
_ADDRESS = re.compile(
    rf"(?P<scheme>(?:(?:[a-z][\w+.-]*:)+@?//)?)(?:(?<=//)(?P<user>[^/@\s?;,]*)@)?(?P<hosts>{_HOST}(?:\s*,\s*{_HOST})*)"
    r"(?P<rest>[/?;].*)?",
    re.I | re.S,
)
_NEXT_URL = re.compile(r"\s*,\s*(?=[a-z][\w+.-]*://)", re.I)
_PATH = re.compile(r"(?:(?:[a-z][\w+.-]*:)+/(?:/(?=/)|(?!/))|~?\.{0,2}/)[\w./ +-]*|[\w.-]+", re.I)
_REFERENCE = re.compile(r"\$\{[^{}]*\}")
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


def shown_address(name: str, value: str) -> str:
    """Where a setting leads, fit to be shown: scheme, hosts and ports, or a path; what can't be parsed is `***`.

    Behind the host there may be a password, with a separator that only the driver knows: `…` stands for it.
    """
    value = value.strip()
    shown = str(shown_value(name, value))
    if shown == "***" or _REFERENCE.fullmatch(value) or _PATH.fullmatch(value):
        return shown
    return ",".join(map(_shown_hosts, _NEXT_URL.split(value))) if value else value


def _shown_hosts(address: str) -> str:
    found = _ADDRESS.fullmatch(address)
    if found is None or "@" in (found["rest"] or ""):
        return "***"
    user = "" if found["user"] is None else "***@"
    return encodable(f"{found['scheme']}{user}{found['hosts']}{'…' if found['rest'] else ''}")
