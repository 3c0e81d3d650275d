"""ACLs as values, as text for other tools, and as the options of the `eosctl acls` commands.

The text is lines of `kafka-acls`, and YAML for Terraform. A line is printed to be pasted: only unknown values are
placeholders, quoted so that no shell interprets them.

One ACL is a value of its own, so that code that prints or carries one need not load the table of rights.

The options are the principals and applications whose rights the commands report.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from eosctl.core.clients.own_brokers import kafka_script
from eosctl.core.clients.settings import ClientSettings
from eosctl.foreign import Lines, shell_words, yaml_text_of


class Acl(Struct, frozen=True):
    """One ACL of the cluster, in Kafka's words: `User:orders`, `*`, WRITE, ALLOW, Topic, `orders`, LITERAL."""

    principal: str
    operation: str
    resource_type: str
    name: str
    pattern_type: str = "LITERAL"
    permission: str = "ALLOW"
    host: str = "*"

    def __str__(self) -> str:
        where = "" if self.host == "*" else f" from host {self.host}"
        pattern = f" ({self.pattern_type.lower()})" if self.pattern_type != "LITERAL" else ""
        return (
            f"{self.permission} {self.principal} {self.operation} on {self.resource_type} {self.name}{pattern}{where}"
        )


_RESOURCE_FLAGS = {"TransactionalId": "--transactional-id", "Topic": "--topic", "Group": "--group"}
_KAFKA_NAMES = {"TransactionalId": "TRANSACTIONAL_ID", "Topic": "TOPIC", "Group": "GROUP", "Cluster": "CLUSTER"}
_SHOWN = 3


def kafka_acls_line(
    operations: Sequence[str], resource_type: str, name: str = "", *, settings: ClientSettings | None = None
) -> str:
    """Return one shell line that grants the operations; the principal is the SASL user where the settings have one.

    `operations` are Kafka's names (`CLUSTER_ACTION`); `resource_type` is TransactionalId, Topic, Group or Cluster
    (`name` empty). A secured listener needs the settings of a principal that may change ACLs.
    """
    user = (settings.sasl_username if settings else None) or "<principal>"
    acls = [Acl(f"User:{user}", operation, resource_type, name) for operation in operations]
    return kafka_acls_lines(acls, settings=settings)[0]


def kafka_acls_lines(acls: Iterable[Acl], *, settings: ClientSettings | None = None, remove: bool = False) -> list[str]:
    """Return the shell lines that add, or `remove`, these ACLs: one line for each resource and principal."""
    operations: dict[Acl, list[str]] = {}
    for acl in acls:
        operations.setdefault(replace(acl, operation=""), []).append(acl.operation)
    tool = kafka_script("kafka-acls.sh", settings) + (["--remove", "--force"] if remove else ["--add"])
    return [shell_words(*tool + _acl_words(acl, each)) for acl, each in operations.items()]


def _acl_words(acl: Acl, operations: Sequence[str]) -> list[str]:
    kind = acl.permission.lower()
    words = [f"--{kind}-principal", acl.principal]
    words += [f"--{kind}-host", acl.host] if acl.host != "*" else []
    for operation in operations:
        words += ["--operation", operation.title().replace("_", "")]
    words += ["--cluster"] if acl.resource_type == "Cluster" else [_RESOURCE_FLAGS[acl.resource_type], acl.name]
    return words + (["--resource-pattern-type", "prefixed"] if acl.pattern_type == "PREFIXED" else [])


def terraform_yaml(acls: Iterable[Acl]) -> list[str]:
    """Format the ACLs as a YAML mapping for `for_each = yamldecode(file(...)).acls`, in Kafka's own names."""
    lines = ["acls:"]
    for acl in acls:
        resource_type = _KAFKA_NAMES[acl.resource_type]
        key = "/".join((acl.principal, acl.operation, resource_type, acl.pattern_type, acl.name))
        members = {
            "resource_type": resource_type,
            "resource_name": acl.name,
            "pattern_type": acl.pattern_type,
            "principal": acl.principal,
            "host": acl.host,
            "operation": acl.operation,
            "permission": acl.permission,
        }
        lines.append(f"  {_quoted(key)}:")  # what JSON quotes, YAML reads
        lines += [f"    {name}: {_quoted(value)}" for name, value in members.items()]
    return lines if len(lines) > 1 else ["acls: {}"]


def _quoted(text: str) -> str:
    return yaml_text_of(json.dumps(text, ensure_ascii=False))


def grant_hint(
    operation: str,
    resource_type: str,
    names: Sequence[str],
    *,
    settings: ClientSettings | None = None,
    then: str | None = None,
) -> str:
    """Describe the missing right, with the lines that grant it for the first few of `names`.

    `then` is the operation that the same command would find missing next: granted together, one paste is enough.
    """
    operations = [operation] if then is None else [operation, then]
    lines = [kafka_acls_line(operations, resource_type, name, settings=settings) for name in names[:_SHOWN]]
    more = [f"... and for {len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    needed = f"{operation} on {resource_type}" + (f" (and then {then})" if then else "")
    return Lines.of(f"Missing: {needed}. Grant it with:", *lines, *more)


class AclRequest(Struct, frozen=True):
    """The options of an `eosctl acls` command.

    Empty `roles` mean Connect's four; a single number in `tasks` applies to all connectors. With a `product` the rights
    are those of `applications` of Kafka Streams or Flink, without roles and connectors. `principals` are
    `role=User:name`, or `User:name` for every role that has no other.
    """

    roles: tuple[str, ...] = ()
    connectors: tuple[str, ...] = ()
    tasks: tuple[int, ...] = ()
    every: bool = False
    mode: str = "enabled"
    principals: tuple[str, ...] = ()
    output_topics: tuple[str, ...] = ()
    dedicated_topic: str | None = None
    prefixed: bool = False
    old_brokers: bool = False
    product: str | None = None
    applications: tuple[str, ...] = ()
    input_topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
