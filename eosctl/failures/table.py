"""The dictionary of failures: every entry, in the order in which a text is compared with them.

Connect's entries come before those of producers, and those about ids before those about rights in general.
"""

from __future__ import annotations

from collections.abc import Mapping

from eosctl.failures.entries.applications import APPLICATIONS
from eosctl.failures.entries.clients import CLIENTS
from eosctl.failures.entries.coordinators import COORDINATORS
from eosctl.failures.entries.fencing import FENCING
from eosctl.failures.entries.producers import PRODUCERS
from eosctl.failures.entries.tasks import TASKS
from eosctl.failures.entries.workers import WORKERS
from eosctl.failures.failure import Failure

FAILURES: tuple[Failure, ...] = (*FENCING, *WORKERS, *TASKS, *APPLICATIONS, *COORDINATORS, *PRODUCERS, *CLIENTS)
BY_CODE: Mapping[str, Failure] = {each.code: each for each in FAILURES}
"""Code -> entry; what doctor and `connectors trace` name, and the anchor in docs/failures.md."""
