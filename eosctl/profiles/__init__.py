"""Resolves flags, environment, profile and worker configs into one Target; edits the config file with the profiles.

It opens no connection and never shows a secret.
"""

from eosctl.profiles.resolve import profile_target, resolve_target
from eosctl.target import Target

__all__ = ["Target", "profile_target", "resolve_target"]
