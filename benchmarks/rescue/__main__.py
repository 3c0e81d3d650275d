"""`eosctl rescue` of a connector with 130 tasks on a real worker: the seconds of each step, and where it waits.

While a new configuration comes, nobody may fence the tasks' ids: the worker's round fails all tasks at once, as it does
after 90 s with more than about 90 of them. The step `watch` is the worker's own start of the tasks, and a little of
eosctl's.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not listed as re-exported
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from benchmarks.pairs import compile_sources
from benchmarks.stacks import own_folder, stack_in
from eosctl.connect.rest import RestConnectWorker
from eosctl.deadline import Deadline
from eosctl.sandbox.settings import StackSpec

GROUP, NAME, PATIENCE_S = "connect-eos", "wide", 120
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


def main() -> None:
    """Start a broker and a worker; jam and rescue the connector."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=130)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    compile_sources()
    spec = StackSpec(broker_config=AUTHORIZER)
    with own_folder() as folder, stack_in(folder, spec) as stack:
        [url] = stack.urls(GROUP)
        configure(url, arguments.tasks, 0)
        wait_for(url, "RUNNING", arguments.tasks)
        time.sleep(5)  # the worker starts the last of them a moment later
        print(f"{arguments.tasks} tasks")
        for run in range(1, arguments.runs + 2):
            with nobody_fences(stack.bootstrap_servers):
                configure(url, arguments.tasks, run)
                wait_for(url, "FAILED", arguments.tasks, because="zombie fencing")
            where = ["-b", stack.bootstrap_servers, "-g", GROUP, "-u", url]
            module = "eosctl" if run <= arguments.runs else "benchmarks.waits"
            tell([sys.executable, "-m", module, "rescue", "--connector", NAME, "--yes", *where])


@contextmanager
def nobody_fences(servers: str) -> Iterator[None]:
    """Forbid the use of the tasks' ids until the block ends."""
    admin = AdminClient({"bootstrap.servers": servers})
    kind, pattern = ResourceType.TRANSACTIONAL_ID, ResourcePatternType.PREFIXED
    what = (kind, f"{GROUP}-{NAME}-", pattern, "User:ANONYMOUS", "*", AclOperation.WRITE, AclPermissionType.DENY)
    for made in admin.create_acls([AclBinding(*what)]).values():
        made.result()
    try:
        yield
    finally:
        for gone in admin.delete_acls([AclBindingFilter(*what)]).values():
            gone.result()


def configure(url: str, tasks: int, run: int) -> None:
    """Create the connector, or change the configuration of all its tasks."""
    worker = RestConnectWorker(url, deadline=Deadline.after(PATIENCE_S))
    text = "org.apache.kafka.connect.storage.StringConverter"
    config = {
        "connector.class": "org.apache.kafka.connect.tools.VerifiableSourceConnector",
        "tasks.max": str(tasks),
        "topic": "records",
        "throughput": "1",
        "key.converter": text,
        "value.converter": text,
        "run": str(run),
    }
    worker.put_connector_config(NAME, config)


def wait_for(url: str, state: str, tasks: int, *, because: str = "") -> None:
    """Wait until all tasks are in `state`, for a reason whose text has `because`."""
    deadline = Deadline.after(PATIENCE_S)
    for _ in deadline.rounds(0.5):
        found = RestConnectWorker(url, deadline=deadline).connectors().get(NAME)
        if [task.state for task in (found.tasks if found else ()) if because in task.trace] == [state] * tasks:
            return
    sys.exit(f"the tasks are not {state}")


def tell(command: Sequence[str]) -> None:
    """Run a command; print what it says, each line after the seconds so far."""
    began_s = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            print(f"{time.perf_counter() - began_s:7.2f} s  {line}", end="")
    print(f"{time.perf_counter() - began_s:7.2f} s  exit code {process.returncode}", flush=True)


if __name__ == "__main__":
    main()
