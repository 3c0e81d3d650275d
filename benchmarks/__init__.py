"""The benchmarks: `python3 -m benchmarks.NAME` runs in the checkout's own environment, as the tests do."""

import signal
import sys

from eosctl import bootstrap

if sys.argv[0] == "-m":
    if not bootstrap.inside_venv():
        bootstrap.run_in_venv(extras=("dev", "spark"), argv=sys.orig_argv[1:])
    # SIGTERM, as timeout(1) sends it, stops the brokers too, as Ctrl-C does
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
