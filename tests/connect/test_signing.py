"""Signatures against the vectors of Kafka's InternalRequestSignatureTest."""

from __future__ import annotations

import base64

import pytest

from eosctl.connect.signing import signature_headers
from eosctl.errors import UnsupportedError

KEY = base64.b64decode("bXSRMaIZmSydijW7V4QFMFmX/jqkV0Mxg7HZgs3Lqzk=")


@pytest.mark.parametrize(
    ("body", "signature"),
    [
        (b'[{"config":"value"},{"config":"other_value"}]', "Kv1/OSsxzdVIwvZ4e30avyRIVrngDfhzVUm/kAZEKc4="),
        (b"", "18AWfsWiIA0COKBD/hiJosl9NLVgU9JyycUck9oL118="),
    ],
)
def test_kafkas_own_vectors(body: bytes, signature: str) -> None:
    assert signature_headers(KEY, body) == {
        "X-Connect-Authorization": signature,
        "X-Connect-Request-Signature-Algorithm": "HmacSHA256",
    }


def test_another_algorithm_gives_another_signature_under_its_own_name() -> None:
    headers = signature_headers(KEY, b"x", algorithm="HmacSHA512")
    assert headers["X-Connect-Request-Signature-Algorithm"] == "HmacSHA512"
    assert len(base64.b64decode(headers["X-Connect-Authorization"])) == 64


def test_an_algorithm_that_python_lacks_is_named() -> None:
    with pytest.raises(UnsupportedError, match="HmacFOO"):
        signature_headers(KEY, algorithm="HmacFOO")
