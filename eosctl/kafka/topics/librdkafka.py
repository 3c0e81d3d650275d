"""Converts settings for librdkafka, and its errors to eosctl's.

Imports confluent_kafka (50 ms), so that it must itself be imported only when a command needs it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from eosctl.core.clients.properties import REQUEST_TIMEOUT, fitted
from eosctl.core.clients.settings import ClientSettings, revealed
from eosctl.deadline import Deadline
from eosctl.errors import (
    BrokerError,
    EosctlError,
    InputFileError,
    NoLoginError,
    NotFoundError,
    UnauthorizedError,
    UnreachableError,
)
from eosctl.kafka.access import Access

Properties = dict[str, Any]

DOWN_S = 3.0
"""The time for which all brokers may be down before a wait fails."""
_TOKEN_TIMEOUT_S = 30.0
_DENIED = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)
_REJECTED = (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._SSL)
_MISSING = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)
_DOWN = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE, KafkaError._DESTROY_BROKER)
_TIMED_OUT = (KafkaError._TIMED_OUT, KafkaError._MSG_TIMED_OUT, KafkaError.REQUEST_TIMED_OUT)
_NO_MECHANISM = "No provider for SASL mechanism"
_NOT_TLS = "SSL routines::wrong version number"
"""OpenSSL's words for a listener without TLS; librdkafka reports an error of TLS or, by chance, of transport."""


def client_properties(settings: ClientSettings) -> Properties:
    """Convert `settings` to librdkafka properties with secrets revealed.

    They are for a constructor, never to be shown or logged. Raises InputFileError for a token file that can't be read,
    UnauthorizedError for a token that has expired.
    """
    given = dict(settings.extra) | {REQUEST_TIMEOUT: str(settings.request_timeout_ms)}
    properties: Properties = dict(fitted(given))
    properties |= {
        "bootstrap.servers": ",".join(settings.bootstrap_servers),
        "security.protocol": settings.security_protocol,
        "client.id": settings.client_id,
        REQUEST_TIMEOUT: int(properties[REQUEST_TIMEOUT]),
        "enable.metrics.push": False,
    }
    if settings.security_protocol.startswith("SASL"):
        properties |= _sasl_properties(settings)
    if settings.security_protocol.endswith("SSL"):
        properties |= _ssl_properties(settings)
    return properties


def _sasl_properties(settings: ClientSettings) -> Properties:
    wanted: Mapping[str, object | None] = {
        "sasl.mechanism": settings.sasl_mechanism,
        "sasl.username": settings.sasl_username,
        "sasl.password": revealed(settings.sasl_password),
    }
    properties = {name: value for name, value in wanted.items() if value is not None}
    if settings.sasl_mechanism == "OAUTHBEARER":
        properties |= _oauth_properties(settings)
    return properties


def _oauth_properties(settings: ClientSettings) -> Properties:
    if settings.oauth_token_endpoint_url is None or settings.oauth_audience is not None:  # its own way sends none
        return {"oauth_cb": _token_reader(settings)}
    extensions = ",".join(f"{name}={value}" for name, value in settings.oauth_extensions.items())
    wanted: Mapping[str, object | None] = {
        "sasl.oauthbearer.method": "oidc" if settings.oauth_token_endpoint_url else None,
        "sasl.oauthbearer.token.endpoint.url": settings.oauth_token_endpoint_url,
        "sasl.oauthbearer.client.id": settings.oauth_client_id,
        "sasl.oauthbearer.client.secret": revealed(settings.oauth_client_secret),
        "sasl.oauthbearer.scope": settings.oauth_scope,
        "sasl.oauthbearer.extensions": extensions or None,
        "https.ca.location": settings.oauth_ca_location,
        "https.ca.pem": settings.oauth_ca_pem,
    }
    return {name: value for name, value in wanted.items() if value is not None}


def _ssl_properties(settings: ClientSettings) -> Properties:
    from eosctl.kafka.tls import anchors_file

    anchors = anchors_file(settings)
    wanted: Mapping[str, object | None] = {
        "ssl.ca.location": anchors or settings.ssl_ca_location,
        "ssl.ca.pem": None if anchors else settings.ssl_ca_pem,
        "ssl.certificate.location": settings.ssl_certificate_location,
        "ssl.certificate.pem": settings.ssl_certificate_pem,
        "ssl.key.location": settings.ssl_key_location,
        "ssl.key.pem": revealed(settings.ssl_key_pem),
        "ssl.key.password": revealed(settings.ssl_key_password),
        "ssl.endpoint.identification.algorithm": "https" if settings.ssl_check_hostname else "none",
    }
    return {name: value for name, value in wanted.items() if value is not None}


def _token_reader(settings: ClientSettings) -> Callable[[str], tuple[object, ...]]:
    """Return a callback that fetches a token at every refresh; one is fetched now, too.

    A callback without a good token makes librdkafka wait 10 s. Raises InputFileError, UnauthorizedError for a token
    that has expired.
    """
    from eosctl.kafka.oauth import fetch_token

    def read_token(_config: str) -> tuple[object, ...]:
        token = fetch_token(settings, Deadline.after(_TOKEN_TIMEOUT_S))
        extensions = ("", dict(settings.oauth_extensions)) if settings.oauth_extensions else ()
        return token.text, token.expires_s, *extensions

    first = fetch_token(settings, Deadline.after(_TOKEN_TIMEOUT_S))
    if first.expires_s <= time.time():
        raise UnauthorizedError(f"the token in {first.source} has expired", hint="Get a new one and run again.")
    return read_token


def quiet_logger() -> logging.Logger:
    """Return a logger for librdkafka's own log lines, which replaces stderr.

    Handlers of the root logger (`-vv`) see the lines.
    """
    logger = logging.getLogger("eosctl.librdkafka")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    return logger


def error_of(exception: KafkaException) -> KafkaError:
    """Return the KafkaError inside `exception`."""
    error: KafkaError = exception.args[0]
    return error


def _code_of(error: KafkaError) -> int:
    """Return the code of an error, made uniform for a listener without TLS."""
    code: int = KafkaError._SSL if _NOT_TLS in error.str() else error.code()
    return code


def translate(
    error: KafkaError, doing: str, *, access: Access | None = None, because: str | None = None
) -> EosctlError:
    """Translate a failure while `doing` ("reading topic t") into an eosctl error.

    `access` is the permission that it needs, `because` the last message to `error_cb`: a timeout alone does not show
    why.
    """

    code, reason = _code_of(error), because or error.str() or error.name()
    if code in _DENIED:
        needs = f" ({access} is needed)" if access else ""
        return UnauthorizedError(f"not authorized: {doing} failed{needs}", hint=access.hint() if access else None)
    if code in _REJECTED:
        return _security_error(doing, code, reason)
    if code in _MISSING:
        return NotFoundError(f"{doing} failed: the topic does not exist: {reason}")
    if code in _DOWN:
        return _unreachable_error(doing, because or error.str())
    if code in _TIMED_OUT:
        return UnreachableError(f"{doing}: no answer from the brokers: {reason}", hint="Are all brokers up?")
    if code == KafkaError._INVALID_ARG and _NO_MECHANISM in reason:
        mechanism = reason.partition(_NO_MECHANISM)[2].partition(":")[0].strip()
        return NoLoginError(
            f"{doing}: the Kafka client of this Python can't log in with SASL {mechanism}: the wheels of "
            "confluent-kafka are built without Kerberos",
            hint="Log in with SCRAM, PLAIN, OAUTHBEARER or a certificate, maybe at another listener; or build it "
            "against a librdkafka that has Kerberos: "
            "pip install --force-reinstall --no-binary confluent-kafka confluent-kafka",
        )
    if code == KafkaError._INVALID_ARG:
        return InputFileError(f"the Kafka client refused its settings: {reason}", hint="See --command-config.")
    return BrokerError(f"{doing} failed: {error.name()}: {reason}")


def _security_error(doing: str, code: int, reason: str) -> UnauthorizedError:
    if code == KafkaError._SSL:  # librdkafka has the same words for a wrong CA and a wrong host name
        return UnauthorizedError(
            f"{doing}: TLS failed: {reason}",
            hint="Check the CA (ssl.truststore.location, or ssl.ca.location), and that the certificate is for "
            "this host name (ssl.endpoint.identification.algorithm= switches that check off).",
        )
    return UnauthorizedError(
        f"{doing}: the brokers did not accept this client: {reason}",
        hint="Check sasl.mechanism, and user name, password or token, in --command-config.",
    )


def _unreachable_error(doing: str, reason: str | None) -> UnreachableError:
    """Return the error for brokers that can't be reached.

    librdkafka does not call `error_cb` for brokers that hang up, as they do over a wrong security.protocol.
    """
    if reason is None:
        return UnreachableError(
            f"{doing}: no broker can be reached, or they close the connection at once",
            hint="Check --bootstrap-server, and security.protocol: the listener may want TLS, SASL, or neither.",
        )
    return UnreachableError(
        f"{doing}: no broker can be reached: {reason}",
        hint="Check --bootstrap-server, and security.protocol in --command-config.",
    )


@dataclass(slots=True)
class ErrorLog:
    """The errors that librdkafka passes to `error_cb`.

    Only they, not the exceptions, show why a broker is not reached.
    """

    monotonic_s: Callable[[], float]
    patience_s: float = DOWN_S
    _refused: KafkaError | None = None
    _last: KafkaError | None = None
    _down_since_s: float | None = field(default=None)

    def __call__(self, error: KafkaError) -> None:

        if _code_of(error) in _REJECTED:
            self._refused = error
        elif error.code() == KafkaError._ALL_BROKERS_DOWN:
            if self._down_since_s is None:
                self._down_since_s = self.monotonic_s()
        else:
            self._last = error

    def clear(self) -> None:
        """Forget the errors once brokers respond again."""
        self._refused = self._last = self._down_since_s = None

    def check(self, doing: str) -> None:
        """Raise an error if waiting longer is useless: login or TLS refused, or every broker down for `patience_s`."""
        if self._refused is not None:
            raise _security_error(doing, _code_of(self._refused), self._refused.str())
        if self._down_since_s is not None and self.monotonic_s() - self._down_since_s >= self.patience_s:
            raise _unreachable_error(doing, self.reason())

    def reason(self) -> str | None:
        """Return librdkafka's last error message, or None."""
        return None if self._last is None else self._last.str()
