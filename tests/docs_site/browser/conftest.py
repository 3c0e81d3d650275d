"""Where there is no browser nothing here is collected: a skip would be a failure. `tests/run/planning.py` knows it."""

from __future__ import annotations

from tests.audit.browser.chromium import browser

collect_ignore_glob = [] if browser() else ["test_*.py"]
