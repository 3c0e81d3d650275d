"""A zombie to practise on: a real producer that holds a transactional id and an open transaction."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from types import MappingProxyType, TracebackType

_PATIENCE_S = 120  # of a loaded machine
_NO_LOGIN: Mapping[str, str] = MappingProxyType({})


class Zombie:
    """A librdkafka producer under `transactional_id` that has written `record` to `topic` and not committed.

    A context manager; `commit()` says how the commit ended, and leaving closes the producer. Sandbox only: taking a
    transactional id over fences whoever holds it.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        transactional_id: str,
        *,
        topic: str,
        record: bytes,
        timeout_ms: int = 600_000,
        login: Mapping[str, str] = _NO_LOGIN,
    ) -> None:
        import logging

        from confluent_kafka import Producer

        silent = logging.Logger("zombie")
        silent.addHandler(logging.NullHandler())
        settings = {
            "bootstrap.servers": bootstrap_servers,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": timeout_ms,
            "enable.metrics.push": False,
            **login,
        }
        self._producer = Producer(settings, logger=silent)
        self._producer.init_transactions(_PATIENCE_S)
        self._producer.begin_transaction()
        self._producer.produce(topic, record, partition=0)
        self._producer.flush(_PATIENCE_S)

    def commit(self) -> str:
        """Try to commit; return `committed` or the name of the error (`_FENCED` once the id was fenced)."""
        from confluent_kafka import KafkaException

        try:
            self._producer.commit_transaction(_PATIENCE_S)
        except KafkaException as exc:
            return str(exc.args[0].name())
        return "committed"

    def __enter__(self) -> Zombie:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _exc: BaseException | None, _tb: TracebackType | None
    ) -> None:
        import warnings

        from confluent_kafka import KafkaException

        with warnings.catch_warnings(), contextlib.suppress(KafkaException):
            warnings.simplefilter("ignore")  # closing a fenced producer complains that it could not abort
            self._producer.close()
