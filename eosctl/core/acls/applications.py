"""The rights that Kafka Streams and Flink need for exactly-once, one principal per application.

Streams: its documentation of security ("Required ACL setting for secure Kafka clusters"): internal topics, group and
the transactional ids all begin with the application.id. Flink: `KafkaSink` writes under ids that begin with its
transactionalIdPrefix; with TransactionNamingStrategy.POOLING it lists the producers of its topics when it starts
(`AdminUtils`, connector 4.0).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from eosctl.core.acls.table import CLUSTER, Right

APPLICATION_ROLE = "application"
ApplicationProduct = Literal["streams", "flink"]
_INCLUDED = "Kafka's own authorizers include it in {}"
_IDS = "without it no transaction can begin"
_INTERNAL = "changelogs and repartition topics of the application: without it no thread starts"
_OFFSETS_OF_FLINK = "offsets that the source commits at checkpoints, for monitoring; a restart takes those of Flink"


class ApplicationScope(Struct, frozen=True):
    """An application.id of Streams, or a transactionalIdPrefix of a Flink sink, and its topics; `T*` is a prefix.

    `groups` are the consumer groups of Flink's sources; that of Streams is its application.id.
    """

    product: ApplicationProduct
    name: str
    input_topics: tuple[str, ...] = ()
    output_topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    old_brokers: bool = False


def application_rights(scopes: Sequence[ApplicationScope]) -> list[Right]:
    """Return the rights that the applications need, each right once, in the order of the scopes."""
    found: dict[tuple[str, ...], Right] = {}
    for scope in scopes:
        for right in _of_streams(scope) if scope.product == "streams" else _of_flink(scope):
            found.setdefault((right.operation, right.resource_type, right.pattern_type, right.name), right)
    return list(found.values())


def _of_streams(scope: ApplicationScope) -> Iterator[Right]:
    ids = f"{scope.name}-"
    yield from _rights(("WRITE", "DESCRIBE"), "TransactionalId", ids, _IDS, prefixed=True)
    yield from _rights(("READ", "DESCRIBE"), "Group", scope.name, "without it no thread joins the application's group")
    yield from _rights(("READ", "WRITE", "CREATE", "DELETE", "DESCRIBE"), "Topic", ids, _INTERNAL, prefixed=True)
    yield replace(_right("DESCRIBE_CONFIGS", "Topic", ids, _INTERNAL, prefixed=True), optional=True)
    yield from _topics(scope)


def _of_flink(scope: ApplicationScope) -> Iterator[Right]:
    yield from _rights(("WRITE", "DESCRIBE"), "TransactionalId", f"{scope.name}-", _IDS, prefixed=True)
    for group in scope.groups:
        yield replace(_right("READ", "Group", group, _OFFSETS_OF_FLINK), optional=True)
    yield from _topics(scope)
    note = "TransactionNamingStrategy.POOLING asks who writes there, to abort what a former run left open"
    for topic in scope.output_topics:
        yield replace(_topic("READ", topic, note), optional=True)


def _topics(scope: ApplicationScope) -> Iterator[Right]:
    """Yield the rights on topics that both products need, and the one that older brokers require of every producer."""
    for topic in scope.input_topics:
        yield _topic("READ", topic, "without it nothing is read")
        yield _topic("DESCRIBE", topic, _INCLUDED.format("READ"))
    for topic in scope.output_topics:
        yield _topic("WRITE", topic, "without it the first record fails")
        yield _topic("DESCRIBE", topic, _INCLUDED.format("WRITE"))
    if scope.old_brokers:
        yield _right("IDEMPOTENT_WRITE", "Cluster", CLUSTER, "brokers before Kafka 2.8 want it of every producer")


def _rights(
    operations: Sequence[str], resource_type: str, name: str, note: str, *, prefixed: bool = False
) -> Iterator[Right]:
    for operation in operations:
        right_note = _INCLUDED.format(operations[0]) if operation == "DESCRIBE" else note
        yield _right(operation, resource_type, name, right_note, prefixed=prefixed)


def _right(operation: str, resource_type: str, name: str, note: str, *, prefixed: bool = False) -> Right:
    pattern = "PREFIXED" if prefixed else "LITERAL"
    return Right(APPLICATION_ROLE, operation, resource_type, name, note, when="enabled", pattern_type=pattern)


def _topic(operation: str, name: str, note: str) -> Right:
    prefixed = name.endswith("*") and name != "*"
    return _right(operation, "Topic", name[:-1] if prefixed else name, note, prefixed=prefixed)
