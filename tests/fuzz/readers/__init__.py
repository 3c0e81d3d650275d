"""All readers of what others wrote, by name."""

from __future__ import annotations

from tests.fuzz.readers.answers import ANSWERS
from tests.fuzz.readers.kept import KEPT
from tests.fuzz.readers.names import NAMES
from tests.fuzz.readers.plugins import PLUGINS
from tests.fuzz.readers.settings import SETTINGS
from tests.fuzz.readers.topics import TOPICS
from tests.fuzz.readers.values import VALUES
from tests.fuzz.readers.wire import WIRE

READERS = {each.name: each for each in (*WIRE, *TOPICS, *SETTINGS, *NAMES, *KEPT, *ANSWERS, *VALUES, *PLUGINS)}
