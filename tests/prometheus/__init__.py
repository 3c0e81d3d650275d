"""A real Prometheus and its promtool, from Debian's package: they judge metrics, rules and the web-config file.

Where they can't be had a test is skipped with the reason; a full run and `.ci/run` fail on a skip.
"""
