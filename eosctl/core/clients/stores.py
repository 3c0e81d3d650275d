"""The key and trust stores in a client's settings that are not PEM, and the settings that name them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from eosctl.core.clients.settings import Secret
from eosctl.core.java.pem import pem_lines
from eosctl.core.java.properties import Properties
from eosctl.errors import InputFileError
from eosctl.foreign import shell_word


class StoreFile(Struct, frozen=True):
    """A key or trust store that is not PEM.

    `where` is the setting that names it; `of_endpoint` marks that of a token endpoint.
    """

    where: str
    store: str
    location: str
    password: Secret | None = None
    key_password: Secret | None = None
    of_endpoint: bool = False

    @property
    def holds_trust(self) -> bool:
        """Whether it holds the certificates of authorities rather than a key."""
        return self.store == "truststore"

    @property
    def password_name(self) -> str:
        """The setting that its password is in."""
        return f"ssl.{self.store}.password"

    def error(self, problem: str) -> InputFileError:
        """Return an error that states the store's problem, with the commands that make PEM of it if Java reads it."""
        what, pem = ("-nokeys", "ca.pem") if self.holds_trust else ("-nodes", "client.pem")
        return InputFileError(
            f"{self.where}: can't open {self.location}: {problem}",
            hint=f"Check {self.password_name}. Where Java can open it, make PEM of it: `keytool -importkeystore "
            f"-srckeystore {shell_word(self.location)} -destkeystore store.p12 -deststoretype PKCS12 && openssl pkcs12 "
            f"-in store.p12 {what} -out {pem}`; then set ssl.{self.store}.type=PEM and "
            f"ssl.{self.store}.location={pem}.",
        )


def endpoint_stores(properties: Properties) -> Iterator[StoreFile]:
    """Yield the truststore of the token endpoint, if it differs from the brokers' one."""
    if properties.values.get("sasl.jaas.config"):
        from eosctl.core.java.jaas import parse_jaas

        options = parse_jaas(properties.resolved("sasl.jaas.config")).options
        for store in store_files(endpoint_properties(properties, options)):
            yield replace(store, of_endpoint=True)


def store_files(properties: Properties) -> Iterator[StoreFile]:
    """Yield the stores that are not PEM by their type or, without a type, by their file name."""
    for store in ("truststore", "keystore"):
        key = f"ssl.{store}.location"
        location = properties.values.get(key, "").strip()
        kind = properties.values.get(f"ssl.{store}.type", "").strip().upper()
        suffix = location.rsplit(".", 1)[-1].lower()
        if not location or kind == "PEM" or (not kind and suffix in ("pem", "crt", "cer")):
            continue
        password = _secret(properties, f"ssl.{store}.password")
        key_password = _secret(properties, "ssl.key.password") if store == "keystore" else None
        yield StoreFile(f"{properties.place(key)}: {key}", store, location, password, key_password)


def _secret(properties: Properties, name: str) -> Secret | None:
    return Secret(properties.resolved(name)) if properties.values.get(name, "").strip() else None


def endpoint_properties(properties: Properties, options: Mapping[str, str]) -> Properties:
    """Return the TLS options of the token endpoint, which are part of the JAAS line (`JaasOptionsUtils`, Kafka 4.3)."""
    values = {name: value for name, value in options.items() if name.startswith("ssl.")}
    return Properties(f"{properties.place('sasl.jaas.config')}: sasl.jaas.config", values)


def endpoint_authorities(options: Properties) -> dict[str, object]:
    """Return the client's fields for the token endpoint's certificate authorities.

    Raises InputFileError for a client certificate, which is not supported.
    """
    if any(name.startswith("ssl.keystore.") for name in options.values):
        raise options.error("ssl.keystore", "a client certificate for the token endpoint is not supported")
    location, pem = (options.values.get(f"ssl.truststore.{what}") for what in ("location", "certificates"))
    fields = {"oauth_ca_location": location, "oauth_ca_pem": pem_lines(pem) if pem else None}
    return {name: value for name, value in fields.items() if value}
