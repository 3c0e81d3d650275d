"""Groups through librdkafka: shows running tasks even where a login is not spoken natively (GSSAPI).

librdkafka has no requests about transactions; they raise UnsupportedError as they do natively.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaException

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import TransactionalId
from eosctl.core.transactions import KafkaFault, RawGroup, RawGroupMember, TransactionDescription
from eosctl.deadline import Deadline, OnEvent, ignore_events
from eosctl.errors import EosctlError, UnauthorizedError
from eosctl.kafka.access import Access
from eosctl.kafka.native.admin_connection import AdminConnection
from eosctl.kafka.topics.librdkafka import translate
from eosctl.kafka.transactions.admin import NativeTransactionAdmin


class LibrdkafkaGroupAdmin(NativeTransactionAdmin):
    """A TransactionAdmin whose cluster id and groups come from librdkafka."""

    def __init__(self, settings: ClientSettings, *, deadline: Deadline, on_event: OnEvent = ignore_events) -> None:
        super().__init__(settings, deadline=deadline, on_event=on_event)
        self._connection = AdminConnection(settings, deadline=deadline)

    def __exit__(self, *exc: object) -> None:
        self._connection.close()
        super().__exit__(*exc)

    def cluster_id(self) -> str:
        """Return the Kafka cluster id."""
        return self._connection.cluster_id()

    def describe_transactions(
        self, transactional_ids: Sequence[TransactionalId]
    ) -> Mapping[TransactionalId, TransactionDescription | KafkaFault]:
        """Raise UnsupportedError; or the error of the login, where librdkafka can't log in either."""
        self.cluster_id()
        return super().describe_transactions(transactional_ids)

    def describe_group(self, group_id: str) -> RawGroup:
        """Describe a group, with member metadata and assignment as bytes; a group that does not exist is Dead."""
        access, doing = Access("DESCRIBE", "Group", group_id, self._settings), f"describing group {group_id}"
        for found in self._groups(doing, group_id, access=access):
            if found.id == group_id:
                if found.error is not None:
                    raise translate(found.error, doing, access=access)
                return _raw(found)
        return RawGroup(group_id, "Dead", "", "", ())

    def describe_groups(self, group_ids: Collection[str]) -> dict[str, RawGroup | EosctlError]:
        """Describe groups one by one; the answer for one that may not be described is the error."""
        found = dict[str, RawGroup | EosctlError]()
        for group_id in sorted(group_ids):
            try:
                found[group_id] = self.describe_group(group_id)
            except UnauthorizedError as error:
                found[group_id] = error
        return found

    def list_groups(self) -> dict[str, str]:
        """Map the groups that the client may DESCRIBE to their protocol types."""
        return {found.id: found.protocol_type for found in self._groups("listing groups")}

    def _groups(self, doing: str, *group_id: str, access: Access | None = None) -> list[Any]:
        client = self._connection.client()
        try:
            with warnings.catch_warnings():
                # the requests that should replace it drop members that are no consumers
                warnings.simplefilter("ignore", DeprecationWarning)
                found: list[Any] = client.list_groups(*group_id, timeout=self._connection.request_timeout_s())
        except KafkaException as exc:
            raise self._connection.translated(exc, doing, access) from exc
        return found


def _raw(found: Any) -> RawGroup:
    members = tuple(
        RawGroupMember(each.id, each.client_id, each.client_host, bytes(each.metadata), bytes(each.assignment))
        for each in found.members
    )
    return RawGroup(found.id, found.state or "Dead", found.protocol_type, found.protocol, members)
