"""Which permission a request needs, said to people: shared by the native connections and by librdkafka's errors."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Access:
    """The permission that a request needs, for the hint when it is missing: READ on TOPIC `connect-offsets`."""

    operation: str
    resource_type: str
    name: str

    def __str__(self) -> str:
        return f"{self.operation} on {self.resource_type.lower().replace('_', ' ')} {self.name}"

    def hint(self) -> str:
        """The kafka-acls line that grants it."""
        resource = "--cluster" if self.resource_type == "CLUSTER" else f"{self._flag()} {self.name}"
        return (
            "Grant it: kafka-acls.sh --bootstrap-server HOST:PORT --add --allow-principal User:NAME "
            f"--operation {self.operation} {resource}"
        )

    def _flag(self) -> str:
        return "--" + self.resource_type.lower().replace("_", "-")
