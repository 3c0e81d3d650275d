"""Which container runs the worker."""

from __future__ import annotations

from typing import Any

import pytest

from eosctl.errors import RefusedError, UsageError
from eosctl.upgrade.drivers.manifests.fields import worker_container

VARIABLE = "CONNECT_EXACTLY_ONCE_SOURCE_SUPPORT"


def container(name: str, image: str = "x", *variables: str) -> dict[str, Any]:
    return {"name": name, "image": image, "env": [{"name": each, "value": ""} for each in variables]}


def found(*containers: dict[str, Any], named: str | None = None, variable: str = VARIABLE) -> str:
    spec = {"containers": list(containers), "initContainers": [container("first")]}
    return worker_container("sts/a", {"spec": {"template": {"spec": spec}}}, named=named, variable=variable)


@pytest.mark.parametrize(
    ("containers", "name"),
    [
        ([container("one", "busybox")], "one"),
        ([container("proxy", "envoy"), container("main", "mine", VARIABLE)], "main"),
        ([container("proxy", "envoy"), container("main", "mine", "CONNECT_GROUP_ID")], "main"),
        ([container("proxy", "envoy"), container("main", "confluentinc/cp-kafka-connect:8.0.0")], "main"),
        ([container("proxy", "connect.example:5000/envoy"), container("main", "quay.io/debezium/connect@sha256:0")],
         "main"),
        ([container("ui", "connect-ui"), container("main", "mine", VARIABLE)], "main"),
        ([container("old", "x", VARIABLE), container("main", "kafka-connect", VARIABLE)], "main"),
    ],
)  # fmt: skip
def test_the_worker_is_found_by_its_variables_or_its_image(containers: list[dict[str, Any]], name: str) -> None:
    """`kubectl set env` gave the variable to every container, sidecars and init containers among them."""
    assert found(*containers) == name


def test_more_than_one_that_may_be_it_is_refused_with_the_names() -> None:
    both = container("a", "mine"), container("b", "mine")
    with pytest.raises(RefusedError, match="has the containers a, b, and nothing shows which of them is the worker"):
        found(*both)
    assert found(*both, named="b") == "b"


@pytest.mark.parametrize(("named", "says"), [("c", "none of that name"), ("first", "it as an init container")])
def test_a_name_that_is_no_container_s_is_refused(named: str, says: str) -> None:
    with pytest.raises(UsageError, match=f"--container {named}: sts/a has {says}") as refused:
        found(container("a"), container("b"), named=named)
    assert refused.value.hint == "Its containers are a, b."


def test_the_variable_that_was_named_tells_too() -> None:
    assert found(container("a", "mine", "MODE"), container("b", "mine"), variable="MODE") == "a"
