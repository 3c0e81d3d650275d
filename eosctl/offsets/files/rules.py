"""Converts a store to a KIP-875 body, and finds the records that such a body can't hold. Opens nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from msgspec import Struct

from eosctl.codes import Code
from eosctl.core.configs.records import UnparsableValueError, decode_value
from eosctl.core.offsets.records import OffsetKey, is_nothing
from eosctl.core.offsets.views import Store, connector_keys
from eosctl.core.records import Record
from eosctl.errors import UsageError
from eosctl.offsets import codes


class RestBody(Struct, frozen=True):
    """A KIP-875 body, and the records of the connector that it can't carry, each with the reason."""

    offsets: tuple[Mapping[str, object], ...]
    left_out: tuple[tuple[Record, Code], ...]

    def text(self) -> str:
        """Return the JSON document that `PATCH /connectors/NAME/offsets` takes."""
        return json.dumps({"offsets": list(self.offsets)}, ensure_ascii=False, indent=2)

    def config_map(self, connector: str) -> str:
        """Return the ConfigMap from which Strimzi's operator alters the offsets (strimzi/proposals 076), as YAML.

        Raises UsageError if it is larger than Kubernetes takes. All but ASCII is escaped, so that no character ends the
        block.
        """
        body = json.dumps({"offsets": list(self.offsets)}, indent=2).replace("\x7f", "\\u007f")
        if len(body) > _MOST_BYTES:
            raise UsageError(
                f"the offsets of {connector} have {len(body):,} bytes, and a ConfigMap takes {_MOST_BYTES:,}",
                hint="Use --format rest, and PATCH /connectors/NAME/offsets.",
            )
        name = re.sub(r"[^a-z0-9.]+", "-", connector.lower()).strip("-.")
        lines = [
            *("apiVersion: v1", "kind: ConfigMap", "metadata:", f"  name: {name or 'connector'}-offsets", "data:"),
            *(f"  {json.dumps(entry_of(connector))}: |", *(f"    {line}" for line in body.splitlines())),
        ]
        return "\n".join(lines)


_MOST_BYTES = 1_048_576
"""The size of all data of a ConfigMap (Kubernetes: 1 MiB)."""
OFFSETS_ENTRY = "offsets.json"
_MIRRORED = re.compile(r".+->.+\.Mirror\w+Connector")


def entry_of(connector: str) -> str:
    """Return the ConfigMap's entry of a connector: a KafkaConnector's, or that of a KafkaMirrorMaker2's connector."""
    return f"{connector.replace('->', '--')}.json" if _MIRRORED.fullmatch(connector) else OFFSETS_ENTRY


def rest_body(store: Store, connector: str) -> RestBody:
    """Return the live offsets of `connector` as `GET /connectors/NAME/offsets` does, ordered by key bytes.

    Deletions are no entries (in a PATCH they would be resets). Left out: `null_partition`, which REST refuses,
    `not_an_offset` for values that Connect can't read, `other_spelling` for all but the newest spelling.
    """
    found: dict[str, tuple[Record, OffsetKey]] = {}
    left_out: list[tuple[Record, Code]] = []
    for key in connector_keys([store], connector):
        record = store.records[key.raw]
        reason = _unfit(key, record)
        if reason is not None:
            left_out.append((record, reason))
        elif not is_nothing(record.value):
            other = found.get(key.identity)
            if other is not None:
                older = min(other[0], record, key=lambda candidate: candidate.timestamp_ms)
                left_out.append((older, codes.OTHER_SPELLING))
                record = other[0] if older is record else record
            found[key.identity] = (record, key)
    entries = [{"partition": key.partition, "offset": decode_value(record.value)} for record, key in found.values()]
    return RestBody(tuple(entries), tuple(left_out))


def _unfit(key: OffsetKey, record: Record) -> Code | None:
    if is_nothing(record.value):
        return None
    if key.partition is None:
        return codes.NULL_PARTITION
    try:
        parsed = decode_value(record.value)
    except UnparsableValueError:
        return codes.NOT_AN_OFFSET
    primitive = isinstance(parsed, dict) and not any(isinstance(member, dict | list) for member in parsed.values())
    return None if primitive else codes.NOT_AN_OFFSET
