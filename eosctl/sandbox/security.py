"""The secured sandbox: a user per role, named like it, and the rights that each of them needs before any connector.

What a connector needs is granted by `eosctl acls apply`, as on any cluster.
"""

from __future__ import annotations

from msgspec.structs import replace

from eosctl.acls.rules import acl_of
from eosctl.core.acls.table import CONNECT_ROLES, ROLES, GroupScope, required_rights
from eosctl.deadline import Deadline
from eosctl.sandbox.secure import SecureListener
from eosctl.sandbox.settings import GroupSpec, StackSpec
from eosctl.sandbox.stack import Stack

_GRANT_TIMEOUT_S = 30.0
# the worker's properties that begin so are of its connectors' clients
_USERS = {"" if role == "worker" else f"{role}.": role for role in CONNECT_ROLES}


def secured(spec: StackSpec, listener: SecureListener | None = None) -> StackSpec:
    """Put the stack behind TLS, SCRAM and an authorizer: every Connect client logs in as the user of its role."""
    groups = tuple(replace(group, users=_USERS) for group in spec.groups)
    return replace(spec, groups=groups, secure=listener or SecureListener.with_users(ROLES))


def grant_roles(stack: Stack, groups: tuple[GroupSpec, ...]) -> None:
    """Grant every role the rights that the groups alone need, without connectors. Wait until the brokers know them."""
    from eosctl.kafka.acls import KafkaAclClient

    acls = {acl_of(right, f"User:{right.role}") for group in groups for right in required_rights(_scope(group), ROLES)}
    deadline = Deadline.after(_GRANT_TIMEOUT_S)
    with KafkaAclClient(stack.client_settings(), deadline=deadline) as store:
        for error in store.create(acls).values():
            raise error
        for _ in deadline.rounds(0.1):
            if acls <= set(store.describe()):
                return
    raise deadline.passed("waiting for the brokers to know the sandbox's ACLs")


def _scope(group: GroupSpec) -> GroupScope:
    topics = group.topics()
    return GroupScope(group.group_id, topics["config"], topics["offset"], topics["status"])
