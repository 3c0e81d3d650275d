"""Which class a connector's config names, in any of the spellings that Connect takes. Pure.

Connect takes the full name, the last part of it, and that without its end: `PluginUtils.aliases` of Apache Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

PROPERTY = "connector.class"
MIRROR_SOURCE = "MirrorSourceConnector"
MIRROR_CHECKPOINT = "MirrorCheckpointConnector"
_END = "Connector"


def pruned_class(config: Mapping[str, object]) -> str:
    """The shortest name of the class, which all ways to name it have in common; empty without one."""
    return str(config.get(PROPERTY, "")).strip().rpartition(".")[2].removesuffix(_END)


def is_class(config: Mapping[str, object], name: str) -> bool:
    """Whether `connector.class` is the class of this simple name: whole, simple, or without `Connector` at its end."""
    return pruned_class(config) == name.removesuffix(_END)


def names_one_of(config: Mapping[str, object], classes: Collection[str]) -> bool:
    """Return whether `connector.class` is one of these full names, or another way to name one of them."""
    named = str(config.get(PROPERTY, "")).strip()
    return (
        named in classes
        if "." in named
        else pruned_class(config) in {pruned_class({PROPERTY: each}) for each in classes}
    )
