"""The settings of a connector that a command line gives: `--set KEY=VALUE`."""

from __future__ import annotations

from collections.abc import Sequence

from eosctl.core.clients.hidden_secrets import shown_value, sounds_secret
from eosctl.core.clients.logins import HIDDEN
from eosctl.errors import UsageError

NAME = "name"
"""The property of a config that repeats the connector's name."""


def parse_settings(given: Sequence[str], *, name_option: str) -> dict[str, str]:
    """Parse `--set KEY=VALUE`; `name_option` is the option that gives the connector another name.

    Raises UsageError for the name, and for a secret: other users of this machine read command lines, and shells keep
    them.
    """
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError("--set takes KEY=VALUE", hint="For example --set topic.prefix=eu.")
        if name == NAME:
            raise UsageError("--set name is not the way to another name", hint=f"Give {name_option} NAME.")
        if sounds_secret(name) and value and shown_value(name, value) == HIDDEN:
            raise UsageError(
                f"--set {name}: a secret on a command line is seen by others",
                hint="Give a reference that the workers there resolve, say '${file:/etc/kafka/secrets:key}', or change "
                "the config itself.",
            )
        found[name] = value
    return found
