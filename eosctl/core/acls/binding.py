"""One ACL as a value of its own: code that prints or carries one need not load the table of rights."""

from __future__ import annotations

from msgspec import Struct


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
