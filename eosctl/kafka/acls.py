"""KafkaAclClient: the real `eosctl.ports.AclClient`, on confluent-kafka.

It describes and creates; which ACLs are wanted, and what the existing ones mean, is decided by `core.acls`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not listed as re-exported
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from eosctl.core.acls.lines import Acl
from eosctl.core.acls.table import CLUSTER
from eosctl.core.clients.settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, UnauthorizedError, UnsupportedError
from eosctl.kafka.access import Access
from eosctl.kafka.admin import KafkaTopicAdmin
from eosctl.kafka.native.admin_connection import AdminConnection
from eosctl.kafka.topics.librdkafka import error_of

_TYPES = {
    "Topic": ResourceType.TOPIC,
    "Group": ResourceType.GROUP,
    "Cluster": ResourceType.BROKER,  # librdkafka's name for it
    "TransactionalId": ResourceType.TRANSACTIONAL_ID,
}
_TYPE_NAMES = {kind: name for name, kind in _TYPES.items()}


class KafkaAclClient:
    """Lists and adds ACLs of the cluster that `settings` name; connects at the first request."""

    def __init__(self, settings: ClientSettings, *, deadline: Deadline) -> None:
        self._settings, self._deadline = settings, deadline
        self._connection = AdminConnection(settings, deadline=deadline)

    def __enter__(self) -> KafkaAclClient:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._connection.close()

    def cluster_id(self) -> str:
        """Return the Kafka cluster id."""
        return self._connection.cluster_id()

    def describe(self) -> Sequence[Acl]:
        """Return every ACL on topics, groups, transactional ids and the cluster.

        Raises UnsupportedError if the brokers have no authorizer, UnauthorizedError without DESCRIBE on the cluster.
        """
        everything = AclBindingFilter(
            ResourceType.ANY, None, ResourcePatternType.ANY, None, None,  # type: ignore[arg-type]  # None is any
            AclOperation.ANY, AclPermissionType.ANY,
        )  # fmt: skip
        future = self._connection.client().describe_acls(everything, request_timeout=self._timeout_s())
        found = self._connection.result(future, "describing ACLs", self._access("DESCRIBE"))
        if not found:
            self._explain_no_acls()
        acls = [_acl(binding) for binding in found if binding.restype in _TYPE_NAMES]
        return sorted(acls, key=lambda acl: (acl.resource_type, acl.name, acl.principal, acl.operation, acl.host))

    def create(self, acls: Iterable[Acl]) -> dict[Acl, EosctlError]:
        """Add `acls`, of which those that exist already stay as they are; return the error for each that was not added.

        One without a response may exist all the same. Raises UnsupportedError without an authorizer.
        """
        bindings = {_binding(acl): acl for acl in acls}
        if not bindings:
            return {}
        futures = self._connection.client().create_acls(list(bindings), request_timeout=self._timeout_s())
        failed: dict[Acl, EosctlError] = {}
        for binding, future in futures.items():
            try:
                self._created(future)
            except UnsupportedError:
                raise
            except EosctlError as exc:
                failed[bindings[binding]] = exc
        return failed

    def _created(self, future: Future[object]) -> None:
        """Wait for one ACL; raises the error that prevented it."""
        doing = "creating ACLs"
        self._connection.wait([future], doing)
        try:
            future.result()
        except KafkaException as exc:
            if error_of(exc).code() == KafkaError.SECURITY_DISABLED:
                raise _no_authorizer(doing) from exc
            raise self._connection.translated(exc, doing, self._access("ALTER")) from exc

    def _explain_no_acls(self) -> None:
        """Raise an error if no ACL was found because none may be seen, or because there can be none.

        librdkafka 2.16 drops DescribeAcls' own error: a refusal looks like a cluster without ACLs.
        """
        client, doing = self._connection.client(), "describing ACLs"
        asked = client.describe_cluster(include_authorized_operations=True, request_timeout=self._timeout_s())
        if AclOperation.DESCRIBE not in (self._connection.result(asked, doing).authorized_operations or ()):
            access = self._access("DESCRIBE")
            raise UnauthorizedError(f"not authorized: {doing} failed ({access} is needed)", hint=access.hint())
        if not self._has_authorizer():
            raise _no_authorizer(doing)

    def _has_authorizer(self) -> bool:
        """Return whether any broker has an authorizer; a refusal to read the brokers' settings proves one."""
        try:
            classes = KafkaTopicAdmin(self._settings, deadline=self._deadline).broker_settings("authorizer.class.name")
        except UnauthorizedError:
            return True
        return any(classes.values())

    def _access(self, operation: str) -> Access:
        return Access(operation, "Cluster", CLUSTER, self._settings)

    def _timeout_s(self) -> float:
        return self._connection.request_timeout_s()


def _no_authorizer(doing: str) -> UnsupportedError:
    return UnsupportedError(
        f"{doing} failed: the brokers have no authorizer, so that every client may do everything",
        hint="ACLs need authorizer.class.name in every server.properties.",
    )


def _acl(binding: Any) -> Acl:
    return Acl(
        principal=binding.principal,
        operation=binding.operation.name,
        resource_type=_TYPE_NAMES[binding.restype],
        name=binding.name,
        pattern_type=binding.resource_pattern_type.name,
        permission=binding.permission_type.name,
        host=binding.host,
    )


def _binding(acl: Acl) -> AclBinding:
    return AclBinding(
        _TYPES[acl.resource_type], acl.name, ResourcePatternType[acl.pattern_type], acl.principal, acl.host,
        AclOperation[acl.operation], AclPermissionType[acl.permission],
    )  # fmt: skip
