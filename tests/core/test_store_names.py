"""Names of stores, here and on the clusters of profiles."""

from __future__ import annotations

import pytest

from eosctl.core.store_names import StoreName, parse_store
from eosctl.errors import UsageError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("global", StoreName("global")),
        ("dedicated", StoreName("dedicated")),
        ("connect-offsets", StoreName("connect-offsets")),
        ("connect-offsets@prod", StoreName("connect-offsets", "prod")),
        ("global@prod", StoreName("global", "prod")),
    ],
)
def test_names(text: str, expected: StoreName) -> None:
    assert (parse_store(text), str(expected)) == (expected, text)


@pytest.mark.parametrize("text", ["", "@", "topic@", "@prod", "dedicated@prod"])
def test_what_is_no_store(text: str) -> None:
    with pytest.raises(UsageError):
        parse_store(text)
