"""Flags, environment, profile and worker configs resolved into one Target; and the config file that profiles live in.

It opens no connection and never shows a secret.
"""

from eosctl.profiles.resolve import profile_target, resolve_target
from eosctl.target import Target

__all__ = ["Target", "profile_target", "resolve_target"]
