"""The options of the `eosctl acls` commands: the principals and applications whose rights they report."""

from __future__ import annotations

from msgspec import Struct


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
