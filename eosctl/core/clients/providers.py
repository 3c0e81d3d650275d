"""Values that only a worker can resolve: who has each, and how a person gets it. Pure: no secret is read here.

Kafka's providers are those of `org.apache.kafka.common.config.provider`, Strimzi's those of
strimzi/kafka-kubernetes-config-provider. A provider's name says nothing, only its `config.providers.NAME.class` does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from eosctl.core.java.properties import Properties, is_reference, references
from eosctl.foreign import Lines, arguments, shell_words

_REFERENCE = re.compile(r"\$\{(?P<provider>[^}:]+):(?:(?P<path>[^}]*):)?(?P<key>[^}:]*)\}")
_KUBERNETES = {"KubernetesSecretConfigProvider": "secret", "KubernetesConfigMapConfigProvider": "configmap"}
_OTHERS = {
    "FileConfigProvider": "it is {key} in the worker's file {path}",
    "DirectoryConfigProvider": "it is the content of the worker's file {path}/{key}",
    "EnvVarConfigProvider": "it is the worker's environment variable {key}",
}


def require_resolved(properties: Properties, keys: Iterable[str]) -> None:
    """Raise InputFileError if only a worker can resolve any of `keys`; name each value, and where it can be had."""
    unresolved = [key for key in keys if is_reference(properties.values.get(key, ""))]
    if not unresolved:
        return
    found = dict.fromkeys(each for key in unresolved for each in references(properties.values[key]))
    first, *others = unresolved
    more = f"; so do those of {', '.join(others)}" if others else ""
    raise properties.error(
        first,
        f"only the worker can resolve it, as the value comes from a config provider{more}",
        hint=Lines.of(
            "Put the values into a file of your own, and name it: --command-config. They are:",
            *(f"{reference}: {_how_to_get(reference, properties)}" for reference in found),
        ),
    )


def _how_to_get(reference: str, properties: Properties) -> str:
    """Describe where a referenced value is; for one of Kubernetes give the command that prints it."""
    parts = _REFERENCE.fullmatch(reference)
    if parts is None:
        return "ask the worker's configuration"
    provider, path, key = parts["provider"], parts["path"] or "", parts["key"]
    full_name = properties.values.get(f"config.providers.{provider}.class", "").strip()
    name = full_name.rpartition(".")[2]
    if name in _KUBERNETES:
        return f"`{_kubectl(_KUBERNETES[name], path, key)}` prints it"
    if name in _OTHERS:
        return _OTHERS[name].format(path=path, key=key)
    return f"config provider {provider}{f' ({full_name})' if full_name else ''} has it"


def _kubectl(kind: str, path: str, key: str) -> str:
    """Return the command that prints one entry of a secret or a config map, or those that a pattern selects."""
    namespace, _slash, name = path.rpartition("/")
    get = ["kubectl", "get", kind, *(["-n", namespace] if namespace else []), "-o"]
    is_secret = kind == "secret"
    if "*" in key:
        pattern = f"^{'.*'.join(map(re.escape, key.split('*')))}$"
        entries = f".data | to_entries[] | select(.key | test({json.dumps(pattern)})) | .value"
        chosen = shell_words("jq", "-r", f"{entries} | @base64d" if is_secret else entries)
        return f"{shell_words(*get, 'json')} {arguments(name)} | {chosen}"
    escaped = key.replace(".", "\\.")
    command = f"{shell_words(*get, f'jsonpath={{.data.{escaped}}}')} {arguments(name)}"
    return f"{command} | base64 -d" if is_secret else command
