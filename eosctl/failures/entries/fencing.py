"""Failures of fencing rounds: Kafka Connect fences the old tasks of an exactly-once source (3.3 to 4.4)."""

from __future__ import annotations

from eosctl.core.transactions import FENCING_FAILED
from eosctl.failures import codes
from eosctl.failures.failure import RESTART, Failure, Family, VersionNote, sign

_FORWARDED = "IO Error trying to forward REST request"
_RESCUE = "`eosctl rescue --connector {c}`"
_HERDER = "connect-runtime: DistributedHerder.fenceZombieSourceTasks and ZombieFencing, 3.3 to 4.3"
_NO_SECOND_PRODUCER = "Not a second producer: this task had not begun to write."

NOT_AUTHORIZED = Failure(
    code=codes.FENCING_NOT_AUTHORIZED, family=Family.CONNECT,
    name="TransactionalIdAuthorizationException of a Connect task",
    signs=(sign("TransactionalIdAuthorizationException"),),
    means="the connector's principal may not use its transactional ids: its producer, or the admin client that fences",
    causes=(
        "The producer's principal lacks WRITE or DESCRIBE on the ids GROUP-CONNECTOR-TASK.",
        "The admin principal lacks them, which shows only at the first reconfiguration, when old tasks are fenced.",
        "The ACL is literal, and the connector has more tasks now.",
    ),
    is_not=("Not a matter of the topics: those are denied with TopicAuthorizationException.",),
    fix="`eosctl acls apply --connector {c}` shows what is missing, and grants it; then " + RESTART,
    commands=("eosctl acls check --connector {c}",),
    said_by=("kafka-clients: Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED (53), 0.11 to 4.3",),
)  # fmt: skip
SUPERSEDED = Failure(
    code=codes.FENCING_SUPERSEDED, family=Family.CONNECT,
    name="Fencing failed because new task configurations were generated (409)",
    signs=(
        sign(
            "new set of task config",
            means="the connector was reconfigured while it was being fenced, or started",
        ),
        sign("new task configurations were generated"),
    ),
    means="the connector was reconfigured while it was being fenced",
    causes=(
        "Two changes of the connector's configuration in quick succession: a deployment that PUTs twice, or retries.",
        "The connector itself asked for new tasks (requestTaskReconfiguration) during the round.",
    ),
    is_not=("Not an error of the brokers, and not a zombie: the round was given up for a newer one.",),
    fix=RESTART + "; after a PUT wait for its task-count record before the next one",
    commands=("eosctl task-counts show {name}",),
    said_by=(
        "connect-runtime: DistributedHerder.ZombieFencing (HTTP 409), 3.3 to 4.3",
        "connect-runtime: DistributedHerder.ConfigUpdateListener and verifyTaskGenerationAndOwnership, 3.3 to 4.3",
    ),
    aliases=("task-config race", "409 new task configurations"),
    fencing=True,
)  # fmt: skip
LEADER_NOT_REACHED = Failure(
    code=codes.LEADER_NOT_REACHED, family=Family.CONNECT,
    name="IO Error trying to forward REST request: the leader is not reached",
    signs=(
        sign(
            _FORWARDED, "UnknownHostException",
            means="its worker can't resolve the host name under which the leader is to be reached, and so can't have "
            "old tasks fenced",
            fix="Give each worker a rest.advertised.host.name that the others resolve (`eosctl workers list` shows "
            "them); then " + RESTART,
        ),
        sign(_FORWARDED, "Connection refused"),
        sign(
            _FORWARDED, "Unexpected character ('<'",
            means="what answered at another worker's URL was a web page, and no worker",
            causes=("A proxy, a load balancer, a service mesh or a login page stands at the advertised URL.",),
            fix="Let workers reach each other directly: rest.advertised.host.name, port and listener; then " + RESTART,
        ),
        sign(
            "Unexpected status code when handling forwarded request",
            means="what answered at another worker's URL sent the "
            "request elsewhere: workers follow no redirect",
            causes=("The advertised URL is http, and something there redirects to https (301, 302, 307, 308).",),
            fix="Set rest.advertised.listener=https, or the URL that needs no redirect, on every worker; "
            "then " + RESTART,
        ),
        sign(
            _FORWARDED, "SSLHandshakeException",
            means="its worker does not trust the leader's REST interface, and so could not have old tasks fenced",
            fix="Mend the workers' listeners.https.ssl.* settings; then " + RESTART,
        ),
    ),
    means="its worker found nobody at the leader's URL, and so could not have old tasks fenced",
    causes=(
        "rest.advertised.host.name is a name that only the worker itself resolves: that of its container.",
        "A firewall or a network policy between the workers.",
        "The leader has just ended.",
    ),
    is_not=("Not a failure of Kafka's brokers: a worker did not reach another worker.",),
    fix="`eosctl workers list` shows the leader's URL, which every worker has to reach; then " + RESTART,
    commands=("eosctl workers list",),
    said_by=("connect-runtime: RestClient.httpRequest, 3.3 to 4.3",),
)  # fmt: skip
FORWARD_TIMEOUT = Failure(
    code=codes.FENCING_FORWARD_TIMEOUT, family=Family.CONNECT,
    name="IO Error trying to forward REST request: the fencing round took too long",
    signs=(
        sign(_FORWARDED, "imeout", "ConnectRestException"),
        sign(
            _FORWARDED, "imeout",
            means="the leader did not answer a request within the 30 s of the follower that passed it on",
            fix="Read back whether it was done, and send the next one to the leader, which waits for 90 s",
        ),
    ),
    means="the leader had not fenced the old tasks when the follower's 30 s were over",
    causes=(
        "The connector had more than about 30 tasks: Connect fences one id a second and broker.",
        "A coordinator is slow, or ends an open transaction of an old task first.",
    ),
    is_not=("Not the end of the leader's round: it goes on, and may still succeed.",),
    fix=_RESCUE + ", or, when the leader's round has ended, " + RESTART + "; then set the two retry.backoff overrides "
    "that `eosctl connectors check` names",
    said_by=("connect-runtime: RestClient.httpRequest (30 s), called by DistributedHerder, 3.3 to 4.3",),
    fencing=True,
)  # fmt: skip
TIMED_OUT = Failure(
    code=codes.FENCING_TIMED_OUT, family=Family.CONNECT,
    name="Failed to perform zombie fencing: timed out",
    signs=(sign(FENCING_FAILED, "Timed out waiting for a node assignment"),
        sign(FENCING_FAILED, "callName=fenceProducer(", "timed out at"), sign("awaiting", "to be fenced")),
    means="Connect could not fence the old tasks in its 90 s; brokers and ids may be well, and a restart fails again",
    causes=(
        "The connector had more than about 90 tasks: Connect's admin client waits a second after each answer.",
        "A transaction coordinator was away for all of the 90 s.",
    ),
    is_not=(
        "Not a sign of a living zombie: a task that runs is fenced as quickly as one that ended.",
        "Not mended by a restart of the worker: the next round takes as long.",
    ),
    fix=_RESCUE,
    said_by=(
        _HERDER,
        "kafka-clients: KafkaAdminClient.handleTimeoutFailure, 3.3 to 4.3",
        "The words \"awaiting … to be fenced\" are literals of no class of Kafka's own jars (clients, connect-*, "
        "kafka_2.13, kafka-*) of 3.5.1, 3.9.2 and 4.3.1; who says them is not known.",
    ),
    aliases=("awaiting … to be fenced",),
    fencing=True,
)  # fmt: skip
FAILED = Failure(
    code=codes.FENCING_FAILED, family=Family.CONNECT,
    name="Failed to perform zombie fencing",
    signs=(
        sign(FENCING_FAILED), sign("Failed to perform round of zombie fencing"),
        sign("Failed to complete zombie fencing"), sign("before performing zombie fencing"),
        sign("Interrupted while performing zombie fencing"),
        sign("Interrupted while attempting to perform round of zombie fencing"),
        sign("Only the leader may perform zombie fencing"),
        sign(_FORWARDED, means="its worker could not have the old tasks fenced by the leader"),
    ),
    means="the old tasks could not be fenced, for example because the leader was restarting",
    causes=(
        "The leader ended or changed during the round.",
        "The leader lost its own transactional id, and could not write the task-count record.",
        "Another reason, which the causes below it have.",
    ),
    is_not=(_NO_SECOND_PRODUCER,),
    fix=RESTART + "; if it fails again see " + _RESCUE,
    commands=("eosctl doctor", "eosctl task-counts show {name}"),
    versions=(
        VersionNote("before 3.7.1", "the round gives up at CONCURRENT_TRANSACTIONS, where later ones ask again "
                    "(KAFKA-16570), and leaves a transaction timeout of 1 ms on the ids (KAFKA-16047)"),
    ),
    said_by=(_HERDER,),
    aliases=("zombie fencing", "ZombieFencing"),
    fencing=True,
)  # fmt: skip
INTERNAL_REST_OFF = Failure(
    code=codes.INTERNAL_REST_OFF, family=Family.CONNECT,
    name="MirrorMaker without internal REST",
    signs=(sign("dedicated.mode.enable.internal.rest"),),
    means="MirrorMaker's workers can't reach their leader, which exactly-once tasks need",
    causes=("A dedicated MirrorMaker of several nodes runs without its internal REST interface (KIP-710).",),
    fix="Set dedicated.mode.enable.internal.rest=true on every MirrorMaker node",
    said_by=("connect-runtime: DistributedHerder.fenceZombieSourceTasks, 3.5 to 4.3",),
)  # fmt: skip

FENCING = (NOT_AUTHORIZED, SUPERSEDED, LEADER_NOT_REACHED, FORWARD_TIMEOUT, TIMED_OUT, FAILED, INTERNAL_REST_OFF)
