"""Worker files as operators and vendors write them: what is in the file is used, all else is asked for by name."""

from __future__ import annotations

import re
import shlex

import pytest

from eosctl.core.clients.properties import client_from_properties, secrets_in
from eosctl.core.clients.settings import ClientSettings, Secret
from eosctl.core.clients.stores import java_refusals
from eosctl.core.java.properties import Properties, parse_properties
from eosctl.errors import InputFileError

STRIMZI = "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"
GOOGLE = "com.google.cloud.hosted.kafka.auth.GcpLoginCallbackHandler"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
CANARY = "canary-4711"


def properties(*lines: str) -> Properties:
    head = ("bootstrap.servers=h:1", "security.protocol=SASL_SSL", "sasl.mechanism=OAUTHBEARER")
    return parse_properties("\n".join((*head, *lines)) + "\n", source="f")


def settings(*lines: str) -> ClientSettings:
    return client_from_properties(properties(*lines)).settings


def strimzi(options: str) -> tuple[str, ...]:
    return f"sasl.login.callback.handler.class={STRIMZI}", f"sasl.jaas.config={MODULE} {options};"


def refusal(*lines: str) -> str:
    with pytest.raises(InputFileError) as error:
        settings(*lines)
    text = f"{error.value.message}\n{error.value.hint}"
    assert CANARY not in text
    return text


def test_strimzis_options_are_client_credentials() -> None:
    found = settings(
        *strimzi(
            'oauth.client.id="eos" oauth.client.secret="s3" oauth.token.endpoint.uri="https://sso/token" '
            'oauth.scope="kafka" oauth.audience="brokers" oauth.sasl.extension.pool="p" '
            'oauth.ssl.truststore.location="/ca.pem" oauth.ssl.truststore.type="PEM"'
        )
    )
    assert (found.oauth_token_endpoint_url, found.oauth_client_id) == ("https://sso/token", "eos")
    assert found.oauth_client_secret == Secret("s3")
    assert (found.oauth_scope, found.oauth_audience) == ("kafka", "brokers")
    assert found.oauth_extensions == {"pool": "p"}
    assert found.oauth_ca_location == "/ca.pem"


@pytest.mark.parametrize(
    ("options", "token", "file"),
    [
        ('oauth.access.token="t"', Secret("t"), None),
        ('oauth.access.token.location="/run/token"', None, "/run/token"),
    ],
)
def test_strimzis_access_token_needs_no_endpoint(options: str, token: Secret | None, file: str | None) -> None:
    found = settings(*strimzi(options))
    assert (found.oauth_token, found.oauth_token_file, found.oauth_token_endpoint_url) == (token, file, None)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ('oauth.client.id="e"', "OAUTH_TOKEN_ENDPOINT_URI"),
        ('oauth.token.endpoint.uri="https://sso/t" oauth.client.id="e"', "OAUTH_CLIENT_SECRET"),
        (f'oauth.token.endpoint.uri="https://s/t" oauth.refresh.token="{CANARY}"', "oauth.refresh.token"),
        (
            f'oauth.token.endpoint.uri="https://s/t" oauth.client.id="e" oauth.client.assertion="{CANARY}"',
            "oauth.client.assertion",
        ),
        *(  # its handler takes these before the secret: it is another user's login
            (f'oauth.token.endpoint.uri="https://s/t" oauth.client.id="e" oauth.client.secret="s" {way}="x"', way)
            for way in ("oauth.refresh.token", "oauth.password.grant.username")
        ),
    ],
)
def test_what_strimzis_handler_takes_from_elsewhere_is_asked_for_by_name(options: str, named: str) -> None:
    assert named in refusal(*strimzi(options))


def test_azures_endpoint_is_one_of_client_credentials() -> None:
    url = "https://login.microsoftonline.com/tenant/oauth2/v2.0/token"
    scope = "https://ns.servicebus.windows.net/.default"
    found = settings(
        f"sasl.oauthbearer.token.endpoint.url={url}",
        f'sasl.jaas.config={MODULE} clientId="app" clientSecret="s" scope="{scope}";',
    )
    assert (found.oauth_token_endpoint_url, found.oauth_client_id, found.oauth_scope) == (url, "app", scope)


def test_a_login_handler_that_only_a_worker_has_is_named() -> None:
    google = (f"sasl.login.callback.handler.class={GOOGLE}", f"sasl.jaas.config={MODULE};")
    assert "localhost:14293" in refusal(*google)
    local = settings(*google, "sasl.oauthbearer.token.endpoint.url=http://localhost:14293")
    assert local.oauth_token_endpoint_url == "http://localhost:14293"
    assert settings(*google, "sasl.oauthbearer.token_command=x").oauth_token_command == "x"
    assert "com.example.Own" in refusal("sasl.login.callback.handler.class=com.example.Own")


@pytest.mark.parametrize("option", ["oauth.access.token", "oauth.client.secret", "oauth.refresh.token"])
def test_a_file_with_strimzis_secrets_must_be_private(option: str) -> None:
    assert secrets_in(properties(*strimzi(f'{option}="{CANARY}"'))) == ["sasl.jaas.config"]


PROVIDERS = (
    "config.providers=secrets,maps,file,dir,env,own",
    "config.providers.secrets.class=io.strimzi.kafka.KubernetesSecretConfigProvider",
    "config.providers.maps.class=io.strimzi.kafka.KubernetesConfigMapConfigProvider",
    "config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider",
    "config.providers.dir.class=org.apache.kafka.common.config.provider.DirectoryConfigProvider",
    "config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    "config.providers.own.class=com.example.Vault",
)


def asked_for(reference: str) -> str:
    """How the error says that a referenced password can be had."""
    jaas = f'{MODULE} clientId="e" clientSecret="{reference}" other="{CANARY}";'
    text = refusal(*PROVIDERS, f"sasl.jaas.config={jaas}", "sasl.oauthbearer.token.endpoint.url=https://s/t")
    [line] = [line for line in text.splitlines() if line.startswith(reference)]
    return line.removeprefix(f"{reference}: ")


def commands(text: str) -> list[list[str]]:
    [command] = re.findall("`(.*)`", text)
    return [shlex.split(part) for part in command.split(" | ") if not part.startswith("to_entries")]


@pytest.mark.parametrize(
    ("reference", "argv"),
    [
        (
            "${secrets:kafka/my-connect:password}",
            ["kubectl", "get", "secret", "-n", "kafka", "-o", "jsonpath={.data.password}", "my-connect"],
        ),
        ("${secrets:my-connect:ca.crt}", ["kubectl", "get", "secret", "-o", r"jsonpath={.data.ca\.crt}", "my-connect"]),
        ("${maps:ns/m:k}", ["kubectl", "get", "configmap", "-n", "ns", "-o", "jsonpath={.data.k}", "m"]),
        (
            "${secrets:ns/$(rm -rf x):k}",
            ["kubectl", "get", "secret", "-n", "ns", "-o", "jsonpath={.data.k}", "$(rm -rf x)"],
        ),
        ("${secrets:ns/--x:k}", ["kubectl", "get", "secret", "-n", "ns", "-o", "jsonpath={.data.k}", "--", "--x"]),
    ],
)
def test_a_value_of_kubernetes_is_asked_for_by_the_command_that_prints_it(reference: str, argv: list[str]) -> None:
    assert commands(asked_for(reference))[0] == argv


def test_a_pattern_selects_entries() -> None:
    text = asked_for("${secrets:ns/ca:*.crt}")
    assert text.startswith("`kubectl get secret -n ns -o json ca | jq -r ")
    assert r'test("^.*\\.crt$")' in text


@pytest.mark.parametrize(
    ("reference", "named"),
    [
        ("${file:/opt/a.properties:pw}", ["pw", "/opt/a.properties"]),
        ("${dir:/opt/secrets:pw}", ["/opt/secrets/pw"]),
        ("${env:PW}", ["PW"]),
        ("${own:path:pw}", ["com.example.Vault"]),
        ("${unknown:path:pw}", ["unknown"]),
    ],
)
def test_other_providers_values_are_named(reference: str, named: list[str]) -> None:
    assert all(name in asked_for(reference) for name in named)


def test_all_that_is_missing_is_said_at_once() -> None:
    text = refusal(
        *PROVIDERS,
        "ssl.truststore.certificates=${secrets:ns/ca:ca.crt}",
        f'sasl.jaas.config={MODULE} clientId="e" clientSecret="${{env:PW}}";',
    )
    assert "${secrets:ns/ca:ca.crt}" in text
    assert "${env:PW}" in text


def test_what_the_protocol_does_not_use_need_not_be_resolved() -> None:
    text = "bootstrap.servers=h:1\nsecurity.protocol=PLAINTEXT\nssl.truststore.certificates=${a:b/c:d}\n"
    assert client_from_properties(parse_properties(text, source="f")).settings.ssl_ca_pem is None


@pytest.mark.parametrize(
    ("lines", "refused"),
    [
        (("ssl.truststore.type=PEM", "ssl.truststore.location=/ca.pem"), 0),
        (("ssl.truststore.type=PEM", "ssl.truststore.location=/ca.pem", "ssl.truststore.password=x"), 1),
        (("ssl.truststore.type=PEM", "ssl.truststore.certificates=x", "ssl.truststore.password=x"), 1),
        (("ssl.truststore.certificates=x",), 1),
        (("ssl.truststore.type=PEM", "ssl.truststore.certificates=x", "ssl.truststore.location=/y"), 1),
        (("ssl.truststore.location=/t.jks", "ssl.truststore.password=x"), 0),
        (("ssl.keystore.type=PEM", "ssl.keystore.location=/k.pem", "ssl.keystore.password=x"), 1),
        (("ssl.keystore.type=PEM", "ssl.keystore.location=/k.pem", "ssl.key.password=x"), 0),
        (("ssl.keystore.type=PEM", "ssl.keystore.key=x", "ssl.keystore.certificate.chain=y"), 0),
        (("ssl.keystore.type=PEM", "ssl.keystore.key=x"), 1),
        (("ssl.truststore.location=/ca.pem",), 1),
        (("ssl.truststore.type=pem", "ssl.truststore.location=/ca"), 1),
    ],
)
def test_stores_that_java_refuses_are_told(lines: tuple[str, ...], refused: int) -> None:
    """`DefaultSslEngineFactory` throws InvalidConfigurationException for each of them; eosctl takes them all."""
    head = ("bootstrap.servers=h:1", "security.protocol=SSL")
    assert len([*java_refusals(parse_properties("\n".join((*head, *lines)), source="f"))]) == refused
    without_tls = "\n".join(("security.protocol=PLAINTEXT", *lines))
    assert not [*java_refusals(parse_properties(without_tls, source="f"))]
