"""Which class a connector's config names, in any of the spellings that Connect takes. Pure.

Connect takes the full name, the last part of it, and that without its end: `PluginUtils.aliases` of Apache Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Mapping

PROPERTY = "connector.class"
MIRROR_SOURCE = "MirrorSourceConnector"
_END = "Connector"


def pruned_class(config: Mapping[str, object]) -> str:
    """The shortest name of the class, which all ways to name it have in common; empty without one."""
    return str(config.get(PROPERTY, "")).strip().rpartition(".")[2].removesuffix(_END)


def is_class(config: Mapping[str, object], name: str) -> bool:
    """Whether `connector.class` is the class of this simple name: whole, simple, or without `Connector` at its end."""
    return pruned_class(config) == name.removesuffix(_END)
