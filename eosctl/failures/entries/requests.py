"""Answers of Connect's REST interface, and requests that workers send each other (3.3 to 4.4)."""

from __future__ import annotations

from eosctl.failures import codes
from eosctl.failures.failure import RESTART, Failure, Family, VersionNote, sign

_TO_HERDER = "connect-runtime: DistributedHerder"
_NAME = r"[^\s'\"]{1,249}"

REBALANCE = Failure(
    code=codes.REBALANCE_EXPECTED, family=Family.CONNECT,
    name="Request cannot be completed because a rebalance is expected (409)",
    signs=(
        sign("Request cannot be completed because a rebalance is expected"),
        sign("Cannot complete request because of a conflicting operation (e.g. worker rebalance)"),
        sign("Cannot complete request momentarily due to no known leader URL"),
        sign("Cannot complete request momentarily due to stale configuration"),
    ),
    means="the group is about to rebalance, or has no leader yet",
    causes=("A worker came or went, or a configuration has just changed.", "Workers can't reach each other or Kafka."),
    is_not=("Not a failure of the connector, and nothing was written.",),
    fix="Send the request again after some seconds",
    commands=("eosctl workers list",),
    said_by=(
        "connect-runtime: DistributedHerder.checkRebalanceNeeded, 0.11 to 4.3",
        "connect-runtime: HerderRequestHandler.completeOrForwardRequest (before 3.4: ConnectorsResource)",
    ),
    aliases=("409 conflict", "RebalanceNeededException"),
    of_transactions=False,
)  # fmt: skip
READ_TIMED_OUT = Failure(
    code=codes.OFFSETS_READ_TIMED_OUT, family=Family.CONNECT,
    name="Timed out while trying to read to the end of the offsets topic",
    signs=(
        sign("Timed out while trying to read to the end of the offsets topic"),
        sign("Timed out while waiting to get end offsets for topic"),
        sign(
            "Request timed out. The last operation the worker completed was",
            means="a worker did not carry out a request within the 90 s of REST, and does not say what it waited for",
        ),
        sign(
            "Request timed out. The worker is currently",
            means="a worker did not carry out a request within the 90 s of REST: it waited for what the message names",
        ),
        sign("Failed to fetch offsets."), sign("Failed to read from the offsets topic"),
    ),
    means="Connect did not get to the end of an offsets topic in time",
    causes=(
        "A transaction is open on the offsets topic: readers of committed records wait before it. A killed task's "
        "lasts for its transaction.timeout.ms.",
        "A hanging transaction, which nothing ends by itself (KIP-664).",
        "The topic is large, or its brokers are slow.",
    ),
    is_not=("Not lost offsets: they are behind the open transaction.",),
    versions=(
        VersionNote("4.3.1", "a GET or PATCH of offsets behind an open transaction is answered after 90 s with "
                    "\"Request timed out. The last operation the worker completed was …\"; the words of the offsets "
                    "topic, which come later, are in no answer and no log (seen)"),
    ),
    fix="Find who holds the transaction open: one that its coordinator has open ends with its timeout, or by a fence "
    "of its id. One that hangs is ended on all of its partitions, with `txn complete --as-decided` where its "
    "coordinator has committed it, else with `txn abort`. Then send the request again",
    commands=("eosctl doctor", "eosctl txn list --state Ongoing", "eosctl txn hanging --all"),
    said_by=(
        "connect-runtime: Worker.modifySourceConnectorOffsets, 3.6 to 4.3",
        "connect-runtime: TopicAdmin.endOffsets, OffsetStorageReaderImpl.offsets, 3.3 to 4.3",
    ),
)  # fmt: skip
SIGNATURE = Failure(
    code=codes.SIGNATURE_REFUSED, family=Family.CONNECT,
    name="Internal request contained invalid signature",
    signs=(
        sign("Internal request contained invalid signature"),
        sign(
            "Internal request missing required",
            means="a worker refused a request of another one, which had no signature",
            causes=(
                "One worker signs requests, and another one does not yet: connect.protocol differs (sessioned is the "
                "default from 2.4 on), or a rolling upgrade is on its way.",
                "Something between the workers takes headers away: a proxy, a service mesh.",
                "A user sent a request to an internal path.",
            ),
        ),
        sign(
            "key signing algorithm used by other workers",
            means="workers of a group sign their requests with different algorithms",
            causes=("inter.worker.signature.algorithm and inter.worker.verification.algorithms differ between "
            "workers.",),
        ),
        sign(
            "has not been able to read a session key from the config topic",
            means="a worker that was still starting was asked as the leader",
            causes=("The leader has just started, and has not read the config topic yet: it passes.",),
        ),
    ),
    means="the leader refused a request of this worker, which was signed with another session key than its own",
    causes=(
        "The group has a new leader, whose session key this worker had not read yet: workers that start at the same "
        "time.",
        "The leader's advertised URL leads to a worker of another group.",
        "inter.worker.signature.algorithm or inter.worker.verification.algorithms differ between workers.",
    ),
    is_not=("Not a stolen key, and not a matter of the brokers.",),
    fix="See that the group is stable and has one leader (`eosctl workers list`); then " + RESTART,
    commands=("eosctl workers list",),
    said_by=("connect-runtime: InternalClusterResource, DistributedHerder.verifyInternalRequestSignature, 2.4 to 4.3",),
    aliases=("invalid signature", "session key"),
    of_transactions=False,
)  # fmt: skip
NOT_STOPPED = Failure(
    code=codes.CONNECTOR_NOT_STOPPED, family=Family.CONNECT,
    name="Connectors must be in the STOPPED state before their offsets can be modified (400)",
    signs=(sign("must be in the STOPPED state before their offsets can be"),),
    means="the offsets of a connector can be changed only while it is STOPPED",
    causes=("The connector is RUNNING or PAUSED: a pause is not enough.", "The stop has not been carried out yet."),
    is_not=("Not a failure of the connector, and nothing was written.",),
    fix="`eosctl connectors stop {name}`, then send the request again, or `offsets set`, which keeps a backup",
    commands=("eosctl connectors stop {name}",),
    versions=(VersionNote("before 3.6", "REST can't change offsets at all (KIP-875)"),),
    said_by=(_TO_HERDER + ".modifyConnectorOffsets, 3.6 to 4.4",),
    aliases=("STOPPED state", "KIP-875"),
    of_transactions=False,
)  # fmt: skip
OFFSETS_REFUSED = Failure(
    code=codes.OFFSETS_REQUEST_REFUSED, family=Family.CONNECT,
    name="Failed to parse … in the provided offsets (400)",
    signs=(
        sign("in the provided offsets", "Failed to parse the following Kafka"),
        sign("need to be provided for an alter offsets request"),
        sign("The partition for a sink connector offset cannot be null or missing"),
        sign("Kafka topic names must be valid strings and may not be null"),
        sign("Kafka partitions must be valid numbers and may not be null"),
        sign(
            "because it doesn't support external modification of offsets",
            means="the connector does not let its offsets be changed through REST",
            fix="Change them in the offsets topic while the connector is stopped: `offsets set`",
        ),
    ),
    means="a request for a change of offsets does not have the shape that Connect takes",
    causes=(
        "A sink's partition is {\"kafka_topic\": …, \"kafka_partition\": …} and its offset {\"kafka_offset\": …}.",
        "The body has no \"offsets\".",
    ),
    is_not=("Not a changed offset: nothing was written.",),
    fix="GET /connectors/{name}/offsets shows the shape: send back the same with other values",
    said_by=("connect-runtime: SinkUtils, ConnectorsResource, Worker.modifyConnectorOffsets, 3.6 to 4.4",),
    of_transactions=False,
)  # fmt: skip
NOT_FOUND = Failure(
    code=codes.REST_NOT_FOUND, family=Family.CONNECT,
    name="Connector … not found (404)",
    signs=(
        sign("not found", pattern=rf"(?:^|: ?\"?|\t)Connector {_NAME} not found(?:$|\")"),
        sign("Unknown connector", pattern=rf"Unknown connector:? {_NAME}(?:$|\")"),
        sign("No status found for connector"), sign("No status found for task"),
        sign(
            "HTTP 404 Not Found",
            means="this worker's REST interface has no such path",
            causes=(
                "The path came with a later Kafka: stop and GET offsets with 3.5, PATCH and DELETE of offsets with "
                "3.6.",
                "The request went to an admin listener, to another service, or has a mistyped path.",
            ),
            fix="See the worker's version: `eosctl workers list`",
        ),
    ),
    means="the group has no connector or task of that name",
    causes=(
        "The name is mistyped: names are case-sensitive.",
        "The request went to the workers of another group.",
        "It was deleted, or the worker has not read the config topic to its end yet.",
    ),
    is_not=("Not proof that its config is lost: `eosctl task-counts replay --topic` shows what the config topic has.",),
    fix="Compare the name with GET /connectors of the group",
    commands=("eosctl workers list",),
    said_by=(_TO_HERDER + ", AbstractHerder (NotFoundException), 3.3 to 4.4",),
    of_transactions=False,
)  # fmt: skip
EXISTS = Failure(
    code=codes.CONNECTOR_EXISTS, family=Family.CONNECT,
    name="Connector … already exists (409)",
    signs=(sign("already exists", pattern=rf"(?:^|: ?\"?|\t)Connector {_NAME} already exists(?:$|\")"),),
    means="the group has a connector of that name",
    causes=("POST makes a new connector only.",
        "A request that had no answer was sent again, and the first one worked."),
    is_not=("Not a rebalance, which has the same status 409.",),
    fix="Send PUT /connectors/{name}/config, which makes or changes it",
    said_by=(_TO_HERDER + ".putConnectorConfig (AlreadyExistsException), 3.3 to 4.4",),
    aliases=("AlreadyExistsException",),
    of_transactions=False,
)  # fmt: skip
NOT_OFFERED = Failure(
    code=codes.EXACTLY_ONCE_NOT_OFFERED, family=Family.CONNECT,
    name="exactly.once.support=required, and it is not offered (400)",
    signs=(
        sign(
            "This worker does not have exactly-once source support enabled",
            means="exactly.once.support=required, and the workers are not enabled",
            fix="Bring the group to enabled first: `eosctl upgrade plan --to enabled`; or leave the property out "
            "until then",
        ),
        sign(
            "in standalone mode does not support exactly-once source connectors",
            means="a standalone worker has no exactly-once sources",
            fix="Run the connector on a distributed worker: a group of one will do",
        ),
        sign("does not implement the API required for preflight validation of exactly-once"),
        sign("does not support exactly-once semantics with the provided configuration"),
        sign("does not support exactly-once delivery guarantees with the provided configuration"),
        sign(
            "does not support connector-defined transaction boundaries",
            means="transaction.boundary=connector, which this connector does not offer",
            fix="Use transaction.boundary=poll or interval",
        ),
    ),
    means="exactly.once.support=required, and the connector does not say that it offers it",
    causes=(
        "The connector's release does not have the method exactlyOnceSupport (KIP-618), and may be fine all the same.",
        "It offers exactly-once with other settings only: see its documentation.",
    ),
    is_not=("Not proof that the connector loses or repeats records.",),
    fix="Take a release that offers it, or set exactly.once.support=requested, which asks nothing of the connector",
    commands=("eosctl connectors check --connector {c}", "eosctl workers list"),
    said_by=(_TO_HERDER + ".validateSourceConnectorConfig, 3.3 to 4.4",),
    aliases=("exactly.once.support",),
    explains=(codes.CONFIG_REFUSED,),
)  # fmt: skip
CONFIG_REFUSED = Failure(
    code=codes.CONFIG_REFUSED, family=Family.CONNECT,
    name="Connector configuration is invalid and contains the following errors (400)",
    signs=(
        sign("Connector configuration is invalid and contains the following"),
        sign("Missing required configuration", "which has no default value"),
        sign("ConfigException", "Invalid value", "for configuration", without=("could not be found",)),
        sign("doesn't match connector name in the URL"), sign("contains no connector type"),
        sign("Client Config Overrides not allowed"),
    ),
    means="a configuration is refused: a setting is missing, or has a value that is not taken",
    causes=(
        "The message names each setting, and why it is refused.",
        "The plugin's validation asks the source system, and got no good answer: address, user, rights.",
        "producer.override.*, and the workers' connector.client.config.override.policy is None or Principal.",
    ),
    is_not=("Not a change: what ran before goes on with its former configuration.",),
    fix="Correct the settings that the message names; PUT /connector-plugins/CLASS/config/validate lists all of them",
    commands=("eosctl connectors check",),
    said_by=("connect-runtime: AbstractHerder.maybeAddConfigErrors, 3.3 to 4.4",
        "kafka-clients: ConfigDef, 0.11 to 4.4"),
    aliases=("ConfigException",),
    of_transactions=False,
)  # fmt: skip

REQUESTS = (
    REBALANCE, READ_TIMED_OUT, SIGNATURE, NOT_STOPPED, OFFSETS_REFUSED, NOT_FOUND, EXISTS, NOT_OFFERED, CONFIG_REFUSED,
)  # fmt: skip
