"""Which class a connector's config names, in any of the spellings that Connect takes. Pure."""

from __future__ import annotations

from collections.abc import Mapping


def is_class(config: Mapping[str, str], name: str) -> bool:
    """Whether `connector.class` is the class of this simple name: whole, simple, or without `Connector` at its end."""
    given = config.get("connector.class", "").strip().rpartition(".")[2]
    return given in {name, name.removesuffix("Connector")}
