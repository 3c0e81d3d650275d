"""The connector class that a config names, in any of the spellings that Connect accepts. Pure.

Connect accepts the full name, its last part, and the last part without its ending: `PluginUtils.aliases` of Apache
Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

PROPERTY = "connector.class"
MIRROR_SOURCE = "MirrorSourceConnector"
MIRROR_CHECKPOINT = "MirrorCheckpointConnector"
_END = "Connector"


def pruned_class(config: Mapping[str, object]) -> str:
    """Return the shortest name of the class, which all its spellings share; empty without one."""
    return str(config.get(PROPERTY, "")).strip().rpartition(".")[2].removesuffix(_END)


def is_class(config: Mapping[str, object], name: str) -> bool:
    """Return whether `connector.class` is the class of this simple name.

    It may be spelled as the full name, the simple name, or the simple name without `Connector` at its end.
    """
    return pruned_class(config) == name.removesuffix(_END)


def names_one_of(config: Mapping[str, object], classes: Collection[str]) -> bool:
    """Return whether `connector.class` is one of these full names, or another way to name one of them."""
    named = str(config.get(PROPERTY, "")).strip()
    return (
        named in classes
        if "." in named
        else pruned_class(config) in {pruned_class({PROPERTY: each}) for each in classes}
    )
