"""Byte for byte against kafka-python, whose codecs are generated from Kafka's own message schemas.

Our bytes are decoded by it, its fields compared with ours by name, and its encoding of them compared with our bytes.
"""

from __future__ import annotations

import importlib
import uuid
import warnings
from typing import Any

import pytest

from eosctl.wire.api import Api, encode_request, encode_response
from eosctl.wire.cluster_messages import API_VERSIONS
from eosctl.wire.schema import Array, Struct
from tests.wire.samples import VERSIONS, messages

BIT_FIELDS = {"authorized_operations", "topic_authorized_operations", "cluster_authorized_operations"}  # sets, there
each_version = pytest.mark.parametrize(
    ("api", "version"), VERSIONS, ids=[f"{api.name}-v{version}" for api, version in VERSIONS]
)


with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of importlib.resources, in kafka-python 3.0.12
    MODULES = [
        importlib.import_module(f"kafka.protocol.{name}")
        for name in ("metadata", "producer.transaction", "consumer", "admin", "sasl")
    ]


def theirs(name: str) -> Any:
    """kafka-python's class of that name."""
    return next(vars(module)[name] for module in MODULES if hasattr(module, name))


def assert_same(ours: Any, other: Any, where: str) -> None:
    """Every field of our message equals theirs of the same name."""
    if hasattr(ours, "_fields"):
        for name in ours._fields:
            assert_same(getattr(ours, name), getattr(other, name), f"{where}.{name}")
    elif isinstance(ours, tuple):
        assert len(ours) == len(other), where
        for index, (one, two) in enumerate(zip(ours, other, strict=True)):
            assert_same(one, two, f"{where}[{index}]")
    elif isinstance(ours, uuid.UUID):
        assert ours == (other if other is not None else uuid.UUID(int=0)), where
    else:
        assert ours == other, where


@each_version
def test_requests(api: Api[Any, Any], version: int) -> None:
    their_class = theirs(f"{api.name}Request")

    for request in messages(api.request, version, 8):
        frame = encode_request(api, request, version=version, correlation_id=5, client_id="eosctl")
        other = their_class.decode(frame[4:], version=version, header=True)
        assert other.encode(version=version, header=True, framed=True) == frame
        assert_carried(api.request, version, request, other)


@each_version
def test_responses(api: Api[Any, Any], version: int) -> None:
    their_class = theirs(f"{api.name}Response")

    for any_response in messages(api.response, version, 8):
        # it reads an answer with an error as v0 (KIP-511)
        response = any_response._replace(error_code=0) if api is API_VERSIONS else any_response
        frame = encode_response(api, response, version=version, correlation_id=5)
        other = their_class.decode(frame[4:], version=version, header=True)
        assert api is API_VERSIONS or other.header.correlation_id == 5
        body = frame[4 + (5 if api.response_header_tags(version) else 4) :]
        other = their_class.decode(body, version=version)
        assert_carried(api.response, version, response, other)
        other._header = None  # encode() looks at it, decode() without a header does not set it
        assert other.encode(version=version) == body


def assert_carried(layout: Any, version: int, ours: Any, other: Any) -> None:
    """As `assert_same`, for the fields that the version carries (what the others default to is each library's own)."""
    for name, field in layout.fields.items():
        if not field.carried(version) or name in BIT_FIELDS:
            continue
        mine, its = getattr(ours, name), getattr(other, name)
        if isinstance(field.type, Array) and isinstance(field.type.element, Struct) and mine is not None:
            assert len(mine) == len(its), name
            for one, two in zip(mine, its, strict=True):
                assert_carried(field.type.element, version, one, two)
        elif mine is None:
            assert its is None, name
        elif its is None and field.tag is not None:
            assert mine == layout.defaults()[name], f"{name} was left out"
        else:
            assert_same(mine, its, name)
