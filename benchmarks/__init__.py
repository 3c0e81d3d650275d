"""The benchmarks: `python3 -m benchmarks.NAME` runs in the checkout's own environment, as the tests do."""

import sys

from eosctl import bootstrap

if sys.argv[0] == "-m" and not bootstrap.inside_venv():
    bootstrap.run_in_venv(extras=("dev", "spark"), argv=sys.orig_argv[1:])
