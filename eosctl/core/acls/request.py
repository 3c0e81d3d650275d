"""Whose rights `eosctl acls` is about, as the user named them: the options of its commands are these members."""

from __future__ import annotations

from msgspec import Struct


class AclRequest(Struct, frozen=True):
    """What the user named. No `roles` are Connect's four; one of `tasks` goes for all connectors.

    With a `product` they are rights of `applications` of Kafka Streams or Flink: no roles and no connectors.
    `principals` are `role=User:name`, or `User:name` for every role that has no other.
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
