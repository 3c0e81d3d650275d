"""How a client logs in: the SASL settings of Java and of librdkafka as fields of ClientSettings. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eosctl.core.clients.settings import Secret
from eosctl.core.clients.stores import endpoint_authorities, endpoint_properties
from eosctl.core.java.lists import split_list
from eosctl.core.java.properties import Properties

if TYPE_CHECKING:
    from eosctl.core.java.jaas import LoginModule

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
        fields |= _oauth_fields(properties, given)
    elif mechanism != "GSSAPI":
        known = {**given, **fields}
        if not known.get("sasl_username") or not known.get("sasl_password"):
            raise properties.error(key, f"{mechanism} needs sasl.jaas.config, or sasl.username and sasl.password")
    return fields


def _jaas_fields(properties: Properties) -> dict[str, object]:
    from eosctl.core.java.jaas import parse_jaas

    key = "sasl.jaas.config"
    try:
        module = parse_jaas(properties.resolved(key))
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


def _oauth_options(module: LoginModule) -> dict[str, object]:
    options, prefix = module.options, "extension_"
    extensions = {name[len(prefix) :]: value for name, value in options.items() if name.startswith(prefix)}
    fields: dict[str, object] = {"oauth_client_id": options.get("clientId"), "oauth_scope": options.get("scope")}
    if "clientSecret" in options:
        fields["oauth_client_secret"] = Secret(options["clientSecret"])
    if extensions:
        fields["oauth_extensions"] = extensions
    return {name: value for name, value in fields.items() if value is not None}


def _oauth_fields(properties: Properties, given: Mapping[str, object]) -> dict[str, object]:
    """Return the fields that name the token's source; Java's `file:` URL names a file that holds it (KIP-768)."""
    key = "sasl.oauthbearer.token.endpoint.url"
    url = properties.values.get(key, "").strip()
    fields: dict[str, object] = {}
    if given.get("oauth_token_command") or given.get("oauth_token"):
        url = ""
    elif not url:
        needed = f"{key} (https://… or file:///…), or {TOKEN_COMMAND}"
        raise properties.error("sasl.mechanism", f"OAUTHBEARER needs {needed}")
    if url.startswith("file:"):
        fields["oauth_token_file"] = "/" + url.removeprefix("file:").lstrip("/")
    elif url:
        fields["oauth_token_endpoint_url"] = url
    pairs = split_list(properties.values.get("sasl.oauthbearer.extensions", ""))
    if pairs:
        fields["oauth_extensions"] = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    return fields
