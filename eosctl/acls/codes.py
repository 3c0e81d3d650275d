"""The codes of findings and problems about rights."""

from __future__ import annotations

from eosctl.codes import finding, warning

ACL_MISSING = finding(
    "acl_missing",
    "No ACL allows what the role needs.",
    "The fix is the kafka-acls line; `eosctl acls apply` adds it.",
)
ACL_DENIED = finding("acl_denied", "An ACL denies what the role needs.", "Remove it, as the fix says.")
ACL_FOR_SOME_HOSTS = finding(
    "acl_for_some_hosts",
    "What the role needs is allowed from some hosts only.",
    "Be sure that all clients are among them.",
)
ACL_DENIED_TO_HOSTS = finding(
    "acl_denied_to_hosts", "What the role needs is denied from some hosts.", "Be sure that no client is among them."
)
NO_AUTHORIZER = finding("no_authorizer", "The brokers have no authorizer: every client may do everything.")
SUPER_USERS_UNKNOWN = finding(
    "super_users_unknown",
    "A super user needs no ACL, and who is one can't be read from the brokers.",
    "Look at server.properties.",
)
TOPICS_UNKNOWN = warning(
    "topics_unknown",
    "Whether topics exist may not be known; rights to create them are left out.",
    "Grant DESCRIBE on them.",
)
CONNECTORS_UNKNOWN = warning(
    "connectors_unknown",
    "What the connectors' configurations say is not known.",
    "Grant READ on the config topic, or name tasks and topics by hand.",
)
TASKS_UNKNOWN = warning(
    "tasks_unknown",
    "How many tasks a connector may have can't be read from its config, so that rights may be for too few ids.",
    "Give --tasks N, or --prefixed.",
)
