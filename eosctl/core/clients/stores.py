"""The settings of a client's login and of its key and trust stores that are not PEM. Pure.

The login is the SASL settings of Java and of librdkafka as fields of ClientSettings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from eosctl.core.clients.settings import Secret
from eosctl.core.java.keystores import pem_lines
from eosctl.core.java.properties import Properties, split_list
from eosctl.errors import InputFileError
from eosctl.foreign import shell_word

if TYPE_CHECKING:
    from eosctl.core.java.keystores import LoginModule


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
        from eosctl.core.java.keystores import parse_jaas

        options = parse_jaas(properties.values["sasl.jaas.config"].strip()).options
        for store in store_files(endpoint_properties(properties, options)):
            yield replace(store, of_endpoint=True)


def store_files(properties: Properties) -> Iterator[StoreFile]:
    """Yield the stores that are not PEM by their type or, without a type, by their file name."""
    for store in ("truststore", "keystore"):
        key = f"ssl.{store}.location"
        location = properties.values.get(key, "").strip()
        kind = properties.values.get(f"ssl.{store}.type", "").strip().upper()
        if not location or kind == "PEM" or (not kind and location.lower().endswith(_PEM_ENDINGS)):
            continue
        password = _secret(properties, f"ssl.{store}.password")
        key_password = _secret(properties, "ssl.key.password") if store == "keystore" else None
        yield StoreFile(f"{properties.place(key)}: {key}", store, location, password, key_password)


def _secret(properties: Properties, name: str) -> Secret | None:
    value = properties.values.get(name, "").strip()
    return Secret(value) if value else None


def endpoint_properties(properties: Properties, options: Mapping[str, str]) -> Properties:
    """Return the TLS options of the token endpoint, which are part of the JAAS line.

    Kafka's begin with `ssl.` (`JaasOptionsUtils`, Kafka 4.3), Strimzi's with `oauth.ssl.`.
    """
    names = {name: name.removeprefix("oauth.") for name in options}
    values = {names[name]: value for name, value in options.items() if names[name].startswith("ssl.")}
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


KINIT_COMMAND = "sasl.kerberos.kinit.cmd"
TOKEN_COMMAND = "sasl.oauthbearer.token_command"  # noqa: S105 - the name of a setting
"""eosctl's own setting: a command that prints a bearer token, run again before that token ends."""

_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
_AWS = "AWS_MSK_IAM"
_AWS_HINT = (
    f"Brokers that take it take OAUTHBEARER with a signer's token, too: set {TOKEN_COMMAND} to a command that prints "
    "one. `eosctl explain token_command` has an example."
)


def sasl_fields(properties: Properties, given: Mapping[str, object]) -> dict[str, object]:
    """Return the SASL fields of a client, in addition to those `given` by single settings; raises InputFileError."""
    key = "sasl.mechanism" if "sasl.mechanism" in properties.values else "sasl.mechanisms"
    mechanism = properties.values.get(key, "GSSAPI").strip().upper()  # GSSAPI is Java's default
    if mechanism == _AWS:
        if not given.get("oauth_token_command"):
            raise properties.error(key, f"eosctl does not sign for {_AWS} itself", hint=_AWS_HINT)
        return {"sasl_mechanism": "OAUTHBEARER"}
    if mechanism not in _MECHANISMS:
        raise properties.error(key, f"{mechanism} is none of {', '.join(_MECHANISMS)}")
    fields: dict[str, object] = {"sasl_mechanism": mechanism}
    if properties.values.get("sasl.jaas.config"):
        fields |= _jaas_fields(properties)
    if mechanism == "OAUTHBEARER":
        fields |= _oauth_fields(properties, {**given, **fields})
    elif mechanism != "GSSAPI":
        known = {**given, **fields}
        if not known.get("sasl_username") or not known.get("sasl_password"):
            raise properties.error(key, f"{mechanism} needs sasl.jaas.config, or sasl.username and sasl.password")
    return fields


def _jaas_fields(properties: Properties) -> dict[str, object]:
    from eosctl.core.java.keystores import parse_jaas

    key = "sasl.jaas.config"
    try:
        module = parse_jaas(properties.values[key].strip())
    except ValueError as exc:
        raise properties.error(key, str(exc)) from exc
    options = module.options
    if options.get("tokenauth", "").lower() == "true":
        raise properties.error(
            key,
            "delegation tokens (tokenauth=true) are not supported",
            hint="Give the name and the password of a user: librdkafka can't log in with a delegation token.",
        )
    if module.name in ("PlainLoginModule", "ScramLoginModule"):
        if not options.get("username") or "password" not in options:
            raise properties.error(key, f"{module.name} needs username and password")
        return {"sasl_username": options["username"], "sasl_password": Secret(options["password"])}
    if module.name == "OAuthBearerLoginModule":
        return _oauth_options(module) | endpoint_authorities(endpoint_properties(properties, options))
    if module.name == "Krb5LoginModule":  # only a librdkafka built with Kerberos can use these
        kerberos = {"sasl.kerberos.principal": options.get("principal"), "sasl.kerberos.keytab": options.get("keyTab")}
        return {"extra": {name: value for name, value in kerberos.items() if value}}
    raise properties.error(key, f"login module {module.name} is not supported")


HANDLER = "sasl.login.callback.handler.class"
_STRIMZI = "oauth."
_STRIMZI_OPTIONS = {
    "oauth.client.id": "oauth_client_id",
    "oauth.scope": "oauth_scope",
    "oauth.audience": "oauth_audience",
    "oauth.token.endpoint.uri": "oauth_token_endpoint_url",
    "oauth.access.token.location": "oauth_token_file",
}
_STRIMZI_SECRETS = {"oauth.client.secret": "oauth_client_secret", "oauth.access.token": "oauth_token"}
_STRIMZI_BEFORE = ("oauth.refresh.token", "oauth.refresh.token.location", "oauth.password.grant.username")
_STRIMZI_AFTER = ("oauth.client.assertion", "oauth.client.assertion.location")
"""What its handler logs in with before it takes the client's secret, maybe as somebody else, and where it has none."""


def _oauth_options(module: LoginModule) -> dict[str, object]:
    """Return the fields in the options of Kafka's login handlers, or Strimzi's (`ClientConfig` of kafka-oauth)."""
    options = module.options
    prefix = "oauth.sasl.extension." if any(name.startswith(_STRIMZI) for name in options) else "extension_"
    extensions = {name[len(prefix) :]: value for name, value in options.items() if name.startswith(prefix)}
    fields: dict[str, object] = {"oauth_client_id": options.get("clientId"), "oauth_scope": options.get("scope")}
    if "clientSecret" in options:
        fields["oauth_client_secret"] = Secret(options["clientSecret"])
    fields |= {field: options[name] for name, field in _STRIMZI_OPTIONS.items() if name in options}
    fields |= {field: Secret(options[name]) for name, field in _STRIMZI_SECRETS.items() if name in options}
    if extensions:
        fields["oauth_extensions"] = extensions
    return {name: value for name, value in fields.items() if value is not None}


def _oauth_fields(properties: Properties, given: Mapping[str, object]) -> dict[str, object]:
    """Return the fields that name the token's source; Java's `file:` URL names a file that holds it (KIP-768)."""
    key = "sasl.oauthbearer.token.endpoint.url"
    url = properties.values.get(key, "").strip()
    fields: dict[str, object] = {}
    if given.get("oauth_token_command") or given.get("oauth_token") or given.get("oauth_token_file"):
        url = ""
    elif not url and not given.get("oauth_token_endpoint_url"):
        needed = f"{key} (https://… or file:///…), or {TOKEN_COMMAND}"
        raise properties.error("sasl.mechanism", f"OAUTHBEARER needs {needed}", hint=_token_hint(properties))
    if url.startswith("file:"):
        fields["oauth_token_file"] = "/" + url.removeprefix("file:").lstrip("/")
    elif url:
        fields["oauth_token_endpoint_url"] = url
    if not (url or given.get("oauth_token_command") or given.get("oauth_token") or given.get("oauth_token_file")):
        _require_client_credentials(properties, given)
    pairs = split_list(properties.values.get("sasl.oauthbearer.extensions", ""))
    if pairs:
        fields["oauth_extensions"] = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    return fields


def _require_client_credentials(properties: Properties, given: Mapping[str, object]) -> None:
    """Raise InputFileError for a way to Strimzi's endpoint that eosctl does not have, or a secret that is elsewhere."""
    from eosctl.core.java.keystores import parse_jaas

    options = parse_jaas(properties.values["sasl.jaas.config"].strip()).options
    has_secret = bool(given.get("oauth_client_id") and given.get("oauth_client_secret"))
    ways = _STRIMZI_BEFORE if has_secret else (*_STRIMZI_BEFORE, *_STRIMZI_AFTER)
    other = next((name for name in ways if name in options), None)
    if other is None and has_secret:
        return
    problem = (
        f"eosctl does not log in with {other}"
        if other
        else "the token endpoint needs oauth.client.id and oauth.client.secret"
    )
    raise properties.error("sasl.jaas.config", problem, hint=_token_hint(properties))


_GOOGLES = "com.google.cloud.hosted.kafka.auth.GcpLoginCallbackHandler"
_STRIMZIS = "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"


def _token_hint(properties: Properties) -> str:
    """Return what to set where the file does not show how to get a token, as its login handler alone knows."""
    handler = properties.values.get(HANDLER, "").strip()
    if handler == _GOOGLES:
        return (
            "Google's handler makes the token of the machine's credentials. Run Google's local server for it "
            "(kafka_gcp_credentials_server.py in googleapis/managedkafka), and set sasl.oauthbearer.token.endpoint.url="
            f"http://localhost:14293 with any client id and secret; or set {TOKEN_COMMAND} to a command that prints "
            "such a token."
        )
    if handler == _STRIMZIS:
        return (
            "Strimzi's handler also takes its settings from the worker's environment: OAUTH_TOKEN_ENDPOINT_URI, "
            "OAUTH_CLIENT_ID, OAUTH_CLIENT_SECRET and others. Put them into sasl.jaas.config of a file of your own "
            f"(oauth.token.endpoint.uri …), or set {TOKEN_COMMAND}."
        )
    own = f"Only a worker has the login handler {handler}. " if handler else ""
    return f"{own}Set {TOKEN_COMMAND} to a command that prints a token. `eosctl explain token_command` has an example."


_PEM_ENDINGS = (".pem", ".crt", ".cer")


def java_refusals(properties: Properties) -> Iterator[str]:
    """Yield settings of key and trust stores that eosctl takes, and Java's clients refuse.

    The rules are those of `DefaultSslEngineFactory`; each was tried on Kafka 4.3.1.
    """
    values = {name: value.strip() for name, value in properties.values.items() if value.strip()}
    if not values.get("security.protocol", "").upper().endswith("SSL"):
        return
    for store, contents in (
        ("truststore", ("ssl.truststore.certificates",)),
        ("keystore", ("ssl.keystore.key", "ssl.keystore.certificate.chain")),
    ):
        kind = values.get(f"ssl.{store}.type", "JKS")
        password, location = f"ssl.{store}.password", f"ssl.{store}.location"
        own = [name for name in contents if name in values]
        if kind == "PEM" and password in values and (own or location in values):
            yield f"{properties.place(password)}: {password} cannot be specified for PEM format"
        if kind != "PEM" and own:
            yield f"{properties.place(own[0])}: {own[0]} can be specified only for PEM, but ssl.{store}.type is {kind}"
        if kind != "PEM" and (kind.upper() == "PEM" or values.get(location, "").lower().endswith(_PEM_ENDINGS)):
            yield f"{properties.place(location)}: ssl.{store}.type is {kind}, so {location} is not read as PEM"
        if own and location in values:
            yield f"{properties.place(location)}: both {location} and {own[0]} are specified"
        if store == "keystore" and len(own) == 1:
            yield f"{properties.place(own[0])}: {own[0]} is specified without the other of {' and '.join(contents)}"
