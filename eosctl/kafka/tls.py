"""TLS for the native connections: the context made from client settings, and failures distinguished.

Imported only when a listener speaks TLS: `ssl` takes longer to load than a plaintext fence takes.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import ssl
from pathlib import Path

from eosctl.core.clients.settings import ClientSettings, Secret
from eosctl.core.java.keystores import anchors_pem
from eosctl.errors import EosctlError, InputFileError, UnauthorizedError, UnreachableError
from eosctl.machine.files import file_in_memory

_HOSTNAME_MISMATCH = {62, 64}  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH
_EXPIRED = {10}
_JAVA_STORE_HINT = (
    "This must be PEM. A Java store is named by ssl.truststore.location or ssl.keystore.location, with its password in "
    "ssl.truststore.password or ssl.keystore.password."
)


def make_tls_context(settings: ClientSettings) -> ssl.SSLContext:
    """Make the TLS context of a client: certificates are always verified, the host name unless that is switched off."""
    if settings.ssl_ca_location or settings.ssl_ca_pem:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # an intermediate alone is an anchor, as it is for Java
        _load_authorities(context, settings)
    else:
        context = ssl.create_default_context()
    context.check_hostname = settings.ssl_check_hostname
    _load_client_certificate(context, settings)
    return context


def _load_authorities(context: ssl.SSLContext, settings: ClientSettings) -> None:
    where = settings.ssl_ca_location or "the CA certificate given in the settings"
    try:
        if settings.ssl_ca_location and Path(settings.ssl_ca_location).is_dir():
            context.load_verify_locations(capath=settings.ssl_ca_location)
        elif settings.ssl_ca_location:
            context.load_verify_locations(cafile=settings.ssl_ca_location)
        if settings.ssl_ca_pem:
            context.load_verify_locations(cadata=settings.ssl_ca_pem)
    except (OSError, ValueError) as exc:
        raise InputFileError(f"can't read CA certificates from {where}: {exc}", hint=_JAVA_STORE_HINT) from exc


def anchors_file(settings: ClientSettings) -> str | None:
    """Write a file of the CA certificates for librdkafka.

    Its form makes librdkafka's OpenSSL trust each as an anchor, as Java does. Returns None where all of them are roots,
    which need no such form, or are in a folder. The file lives as long as this process. Raises InputFileError.
    """
    location = settings.ssl_ca_location
    if settings.ssl_ca_pem is None and (location is None or Path(location).is_dir()):
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _load_authorities(context, settings)
    roots = sum(each["subject"] == each["issuer"] for each in context.get_ca_certs())
    if roots == context.cert_store_stats()["x509"]:
        return None
    return _kept_anchors(settings.ssl_ca_pem or Path(location or "").read_text("ascii", "replace"))


@functools.cache
def _kept_anchors(pem: str) -> str:
    kept = contextlib.ExitStack()
    atexit.register(kept.close)
    return kept.enter_context(file_in_memory(anchors_pem(pem)))


def _load_client_certificate(context: ssl.SSLContext, settings: ClientSettings) -> None:
    certificate, key = settings.ssl_certificate_location, settings.ssl_key_location
    if settings.ssl_certificate_pem:
        _load_inline_certificate(context, settings.ssl_certificate_pem, settings)
    elif certificate or key:
        _load_chain(context, certificate or key or "", key, settings.ssl_key_password)


def _load_inline_certificate(context: ssl.SSLContext, certificate: str, settings: ClientSettings) -> None:
    key = settings.ssl_key_pem.reveal() if settings.ssl_key_pem else ""
    with file_in_memory(f"{key}\n{certificate}\n") as name:
        _load_chain(context, name, settings.ssl_key_location, settings.ssl_key_password, shown="of the settings")


def _load_chain(
    context: ssl.SSLContext, certificate: str, key: str | None, password: Secret | None, *, shown: str | None = None
) -> None:
    try:
        # an empty password instead of none: OpenSSL would ask on the terminal
        context.load_cert_chain(certificate, key, password=password.reveal() if password else "")
    except (OSError, ValueError) as exc:
        raise InputFileError(
            f"can't load the client certificate {shown or certificate}: {exc}",
            hint=f"Certificate and key must be PEM and belong together; an encrypted key needs ssl.key.password. "
            f"{_JAVA_STORE_HINT}",
        ) from exc


def is_alert(exc: OSError) -> bool:
    """Return whether the other side sent an alert with the reason, instead of just closing the connection."""
    return "ALERT" in (getattr(exc, "reason", None) or "")


def tls_failure(exc: OSError, broker: str) -> EosctlError:
    """Translate a failed handshake, or an alert in place of a response, into an error."""
    if isinstance(exc, ssl.SSLCertVerificationError):
        return _verification_failure(exc, broker)
    reason = getattr(exc, "reason", None) or ""
    if reason in {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"}:
        return UnreachableError(
            f"{broker} does not speak TLS", hint="The listener looks like plaintext: check security.protocol and port."
        )
    if "CERTIFICATE_REQUIRED" in reason or "HANDSHAKE_FAILURE" in reason or "BAD_CERTIFICATE" in reason:
        return UnauthorizedError(
            f"{broker} refused the TLS handshake: {reason.lower().replace('_', ' ')}",
            hint="It probably wants a client certificate that it trusts (ssl.keystore.* or ssl.certificate.location).",
        )
    if is_alert(exc):
        return UnauthorizedError(f"{broker} refused the TLS handshake: {reason.lower().replace('_', ' ')}")
    if isinstance(exc, TimeoutError):
        return UnreachableError(f"{broker} did not finish the TLS handshake in time")
    hung_up = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ConnectionError)  # which one depends on OpenSSL and Python
    if isinstance(exc, hung_up) or "EOF" in reason:
        return UnreachableError(
            f"{broker} closed the connection during the TLS handshake",
            hint="Kafka does that when the listener is plaintext: check security.protocol and port.",
        )
    return UnreachableError(f"TLS with {broker} failed: {exc}")


def _verification_failure(exc: ssl.SSLCertVerificationError, broker: str) -> UnauthorizedError:
    if exc.verify_code in _HOSTNAME_MISMATCH:
        return UnauthorizedError(
            f"the certificate of {broker} is for another host: {exc.verify_message}",
            hint="Use the certificate's name, or switch the check off: ssl.endpoint.identification.algorithm=",
        )
    if exc.verify_code in _EXPIRED:
        return UnauthorizedError(f"the certificate of {broker} has expired")
    return UnauthorizedError(
        f"the certificate of {broker} is not trusted: {exc.verify_message}",
        hint="Give the CA that signed it (ssl.truststore.location, or ssl.ca.location).",
    )
