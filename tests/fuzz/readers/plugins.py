"""Jars of connector plugins, and the class files in them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from eosctl.core.java.class_file import NotAClassFileError, read_class
from eosctl.plugins.archives import read_plugin
from eosctl.plugins.kafka_classes import known_classes
from eosctl.plugins.rules import installed_plugins, judge_plugin
from tests.fuzz.reader import Reader
from tests.fuzz.scratch import put
from tests.plugins.jars import APP_INFO, CONNECTOR, SLOW_SOURCE, class_bytes


def _read_jar(data: bytes) -> object:
    """As `upgrade plan --plugins` does."""
    plugin, table = read_plugin(put("plugin.jar", data)), known_classes()
    return installed_plugins(plugin, table, "4.4.0"), judge_plugin(plugin, table, "4.4.0", "4.4.0")


def _read_class(data: bytes) -> object:
    with suppress(NotAClassFileError):
        return read_class(data)
    return None


def _jars() -> Sequence[bytes]:
    return [SLOW_SOURCE.read_bytes()]


def _classes() -> Sequence[bytes]:
    uses = [("x/C", "f", "([[ILx/D;)V"), (APP_INFO, "getVersion", "()Ljava/lang/String;")]
    return [class_bytes("x/C", extends=CONNECTOR, names=["[[Lx/D;", "[I"], uses=uses, declares=[("f", "(J)V")])]


PLUGINS = (Reader("plugin-jar", _read_jar, _jars), Reader("class-file", _read_class, _classes))
