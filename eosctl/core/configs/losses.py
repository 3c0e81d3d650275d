"""How records of a source connector get lost inside transactions that are committed, as its config shows it. Pure.

Exactly-once begins at the producer. A record that does not reach it is in no transaction, and the offset of the next
record is behind it: the log shows neither. Nothing is claimed of classes that are not named here.

Classes: Kafka's own converters, transformations and predicates throw no RetriableException, and only Filter returns no
record (javap, connect-api, -json, -transforms and -runtime of 3.3.2, 3.9.2 and 4.3.1). Confluent's converters make one
of each time-out of the schema registry (their sources, `fromConnectData`). What an exactly-once task's producer refuses
is not lost: the task fails, with errors.tolerance=all, too (ExactlyOnceWorkerSourceTask.producerSendFailed, 3.3.2 to
4.4.0). One without transactions skips it then (WorkerSourceTask, KAFKA-13348).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from msgspec import Struct

from eosctl.core.configs.records import PROPERTY
from eosctl.core.java.properties import LONG_BITS, java_number, split_list, trimmed

TOLERANCE = "errors.tolerance"
RETRY_TIMEOUT = "errors.retry.timeout"
DEBEZIUM = "io.debezium."
_SKIPPING: tuple[tuple[str, Collection[str], str], ...] = (
    (TOLERANCE, {"all"}, "drops each record at which a converter or transformation fails; the worker's log has them "
     "where errors.log.enable=true"),
    ("event.processing.failure.handling.mode", {"warn", "skip", "ignore"}, "leaves out what Debezium can't process"),
    ("inconsistent.schema.handling.mode", {"warn", "skip"}, "leaves out changes of tables that Debezium does not know"),
)  # fmt: skip
"""Setting, the values with which what fails is left out, and what that means; the last two are Debezium's."""
SKIPPING_SETTINGS = tuple(name for name, _values, _what in _SKIPPING)
_KAFKAS = "org.apache.kafka.connect."
_KAFKAS_CONVERTERS = frozenset(
    {"String", "Json", "ByteArray", "Boolean", "Double", "Float", "Integer", "Long", "Short", "Simple"}
)
_RETRIABLE = frozenset(
    {
        "io.confluent.connect.avro.AvroConverter",
        "io.confluent.connect.protobuf.ProtobufConverter",
        "io.confluent.connect.json.JsonSchemaConverter",
    }
)
_FILTERS = frozenset(
    {
        f"{_KAFKAS}transforms.Filter",
        "io.confluent.connect.transforms.Filter$Key",
        "io.confluent.connect.transforms.Filter$Value",
        "io.debezium.transforms.Filter",
    }
)
"""Transformations that leave out records whatever their settings are."""
_OPERATIONS = frozenset("cudtr")
"""The operations that Debezium can leave out (skipped.operations)."""
_CONVERTERS = {
    "key.converter": "",
    "value.converter": "",
    "header.converter": f"{_KAFKAS}storage.SimpleHeaderConverter",
}
"""Setting -> Kafka's default; the workers have to set the first two."""
_SNAPSHOTS = (
    "A snapshot that was interrupted is taken again, and its rows are delivered again, in transactions of their own."
)
_NO_SNAPSHOT = frozenset({"never", "no_data", "schema_only", "recovery", "schema_only_recovery"})


class Losses(Struct, frozen=True):
    """The ways in which a config may keep records from a connector's producer; settings are written as `name=value`.

    `skipping` are settings that leave out what fails. `retriable` are the classes that are known to throw a
    RetriableException, `untold` those of which that is not known; Connect repeats them until the task is stopped where
    `retries_for_ever`, which workers before 3.4 do not. `filters` leave out records by design; of `unknown_filters` it
    is not known whether they do.
    """

    skipping: Mapping[str, str] = {}
    retriable: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()
    retries_for_ever: bool = False
    filters: tuple[str, ...] = ()
    unknown_filters: tuple[str, ...] = ()

    def sentences(self, *, with_untold: bool = False) -> list[str]:
        """Return each way in which records may get lost; `with_untold`: what classes of which nothing is known may do.

        A transformation of which nothing is known is named in any case.
        """
        tolerant = [name for name in self.skipping if name.startswith(TOLERANCE)]
        throwing = self.retriable or (self.untold if with_untold else ())
        lines = [f"{name} {what}." for name, what in self.skipping.items()]
        if throwing and not tolerant:
            stopped = (
                " where the task is stopped while it repeats, those before 3.4 always" if self.retries_for_ever else ""
            )
            lines.append(
                f"Workers before Kafka 4.0 drop a record after a RetriableException of {' or '.join(throwing)}"
                f"{stopped}, with {TOLERANCE}=none too (KAFKA-18073)."
            )
        lines += [f"{each} leaves out records by design." for each in self.filters]
        return [*lines, *(f"{each} may leave out records." for each in self.unknown_filters)]


def losses_of(config: Mapping[str, str], default: Callable[[str], str | None] = lambda _name: None) -> Losses:
    """Return what a connector's config allows; `default` returns the workers' own setting, None where it is unknown."""
    skipping = {
        f"{name}={value}": what
        for name, values, what in _SKIPPING
        if (value := trimmed(config.get(name, "")).lower()) in values
    }
    transforms = _types(config, "transforms")
    stages = {**_converters(config, default), **transforms, **_types(config, "predicates")}
    operations = split_list(config.get("skipped.operations", ""))
    return Losses(
        skipping=skipping,
        retriable=tuple(_shown(name, each) for name, each in stages.items() if _is_one_of(each, _RETRIABLE)),
        untold=tuple(
            _shown(name, each)
            for name, each in stages.items()
            if not _is_kafkas(each) and not _is_one_of(each, _RETRIABLE)
        ),
        retries_for_ever=retry_timeout_ms(config) == -1,
        filters=(
            *(_filter(config, name, each) for name, each in transforms.items() if _is_one_of(each, _FILTERS)),
            *(
                [f"skipped.operations={','.join(operations)}"]
                if operations and _OPERATIONS.issuperset(operations)
                else []
            ),
        ),
        unknown_filters=tuple(
            _shown(name, each)
            for name, each in transforms.items()
            if not _is_kafkas(each) and not _is_one_of(each, _FILTERS)
        ),
    )


def _converters(config: Mapping[str, str], default: Callable[[str], str | None]) -> dict[str, str]:
    """Return the classes of the converters in use; empty for the unknown ones of the workers."""
    return {name: trimmed(config.get(name) or default(name) or kafkas) for name, kafkas in _CONVERTERS.items()}


def _types(config: Mapping[str, str], setting: str) -> dict[str, str]:
    """Return the classes of `transforms` or `predicates`, by the name of the setting that has each."""
    aliases = split_list(config.get(setting, ""))
    return {f"{setting}.{alias}.type": trimmed(config.get(f"{setting}.{alias}.type", "")) for alias in aliases}


def _shown(name: str, found: str) -> str:
    return f"{name}={found}" if found or name not in _CONVERTERS else f"the workers' {name}"


def _filter(config: Mapping[str, str], name: str, found: str) -> str:
    """Name a filter with its predicate."""
    prefix = name.removesuffix("type")
    predicate = trimmed(config.get(f"{prefix}predicate", ""))
    if not predicate:
        return _shown(name, found)
    negated = trimmed(config.get(f"{prefix}negate", "")).lower() == "true"
    kind = trimmed(config.get(f"predicates.{predicate}.type", "")).rpartition(".")[2]
    return f"{_shown(name, found)} ({'not ' if negated else ''}{predicate}: {kind or 'of no type'})"


def _is_kafkas(found: str) -> bool:
    """Return whether a class is Kafka's own, under its full name or a converter's alias."""
    alias = found.removesuffix("Converter").removesuffix("Header")
    return found.startswith(_KAFKAS) or alias in _KAFKAS_CONVERTERS


def _is_one_of(found: str, classes: Iterable[str]) -> bool:
    """Return whether a class is one of these, under its full name or its alias."""
    return found in classes or (bool(found) and found in {each.rpartition(".")[2] for each in classes})


def not_in_the_log(config: Mapping[str, str], *, has_sequence: bool, has_unique: bool) -> list[str]:
    """Return what no log shows of a connector with this config, unless the values of its records are compared."""
    lost = [] if has_sequence else losses_of(config).sentences()
    return [*lost, *([_SNAPSHOTS] if takes_snapshots(config) and not has_unique else [])]


def retry_timeout_ms(config: Mapping[str, str]) -> int | None:
    """Return how long Connect repeats what threw a RetriableException: -1 for ever; None if that is unreadable."""
    return java_number(config.get(RETRY_TIMEOUT, "0"), bits=LONG_BITS)


def takes_snapshots(config: Mapping[str, str]) -> bool:
    """Return whether it is a connector of Debezium's that takes a snapshot of rows."""
    mode = trimmed(config.get("snapshot.mode", "initial")).lower()
    return trimmed(config.get(PROPERTY, "")).startswith(DEBEZIUM) and mode not in _NO_SNAPSHOT
