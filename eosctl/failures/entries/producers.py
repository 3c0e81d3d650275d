"""Failures of transactional and idempotent producers: fencing, expiry, states and sequences (Kafka 0.11 to 4.4)."""

from __future__ import annotations

from eosctl.failures import codes
from eosctl.failures.failure import Failure, Family, VersionNote, sign

_DESCRIBE = "eosctl txn describe {id}"
_TV2 = "4.0 and newer with transaction.version=2"
_ERRORS = "kafka-clients: Errors"

FENCED = Failure(
    code=codes.PRODUCER_FENCED, family=Family.PRODUCER, name="ProducerFencedException",
    signs=(
        sign(
            "Failed to acquire transactional PID", "There is a newer producer with the same transactionalId",
            means="its request for the next epoch was refused: the coordinator has raised the epoch already",
            causes=(
                "Its transaction had timed out or failed, and an earlier request of the same client (before it, often: "
                "\"another concurrent operation\") was carried out after all: it fenced itself.",
                "A second instance of the application began with the same transactional.id.",
            ),
            fix="Close the producer and make a new one. Where no second instance exists, keep transactions shorter "
            "than transaction.timeout.ms",
        ),
        sign("ProducerFencedException"), sign("has been fenced by another producer with the same transactionalId"),
        sign("There is a newer producer with the same transactionalId"),
        sign("Producer attempted an operation with an old epoch", without=("Broker: ",)),
        sign("This instance has been fenced by a newer instance"), sign("transactional producer fenced by newer"),
        sign("ProducerFencedError"), sign("PRODUCER_FENCED"), sign("errc::fenced"),
    ),
    means="another producer took over the transactional id, or the coordinator ended its transaction",
    causes=(
        "A second instance of the application began with the same transactional.id: a deployment that overlaps, two "
        "hosts with one configuration, a copy of the configuration.",
        "The transaction was open for longer than transaction.timeout.ms, and the coordinator ended it (up to 3.9).",
        "Somebody fenced the id: `eosctl fence`, Admin.fenceProducers, forceTerminateTransaction, Connect's leader.",
        "InitProducerId had no answer in time, and the application asked again: both were carried out, and the "
        "producer that it uses has the older epoch (seen with Spring, whose stopContainerWhenFenced stops a container "
        "that would go on skipping).",
    ),
    is_not=(
        "Not always a second producer: up to 3.9 a commit after the timeout has the same words. The broker's log has "
        "\"Completed rollback of ongoing transaction for transactionalId … due to timeout\" then, and no other "
        "InitProducerId of that id.",
        "Not an expired id: that is an InvalidPidMappingException.",
        "Not mended by another call: this producer is done, and its transaction is aborted.",
    ),
    fix="Close the producer and make a new one, unless another instance is meant to have the id; then give each "
    "instance an id of its own",
    commands=(_DESCRIBE, "eosctl txn log {id}", "eosctl txn applications", "eosctl history"),
    versions=(
        VersionNote("before 2.7", "INVALID_PRODUCER_EPOCH (47) has this name and the words \"Producer attempted an "
                    "operation with an old epoch. Either there is a newer producer with the same transactionalId, or "
                    "the producer's transaction has been expired by the broker.\" (KIP-588)"),
        VersionNote("2.7 to 3.9", "a commit after the transaction timed out, too (seen on 3.9.2)"),
        VersionNote(_TV2, "a commit after the timeout gets InvalidTxnStateException (seen on 4.3.1)"),
    ),
    said_by=(_ERRORS + ".PRODUCER_FENCED (90), 2.7 to 4.3",
    "kafka-clients: TransactionManager.maybeFailWithError, 2.7 to 4.3"),
    aliases=("PRODUCER_FENCED", "fenced", "Producer attempted an operation with an old epoch"),
    explains=(codes.PRODUCER_IN_ERROR,),
)  # fmt: skip
EPOCH = Failure(
    code=codes.INVALID_PRODUCER_EPOCH, family=Family.PRODUCER, name="InvalidProducerEpochException",
    signs=(
        sign("InvalidProducerEpochException"), sign("attempted to produce with an old epoch"),
        sign("Epoch of producer", pattern="than (?:or equal to )?the last seen epoch"),
        sign("Broker: Producer attempted an operation with an old epoch"), sign("INVALID_PRODUCER_EPOCH"),
        sign("InvalidProducerEpochError"), sign("errc::invalid_producer_epoch"),
    ),
    means="a partition knows a newer epoch of the producer: its transaction was ended, or its id was taken over",
    causes=(
        "The transaction was open for longer than transaction.timeout.ms: the coordinator aborted it with a newer "
        "epoch.",
        "A second instance began with the same transactional.id.",
        "Somebody fenced the id.",
    ),
    is_not=(
        "Not proof of a second producer: abortTransaction tells. It succeeds after a timeout, and throws "
        "ProducerFencedException where there is another one.",
        "Not a fatal error from 2.7 on: the transaction can be aborted.",
    ),
    fix="Call abortTransaction; where it succeeds go on, and raise transaction.timeout.ms; else close the producer",
    commands=(_DESCRIBE, "eosctl txn log {id}"),
    versions=(
        VersionNote("before 2.7",
        "the class does not exist: error 47 is a ProducerFencedException, and fatal (KIP-588)"),
        VersionNote(_TV2, "every commit raises the epoch: an epoch that went up proves no fencing by itself (KIP-890)"),
    ),
    said_by=(
        _ERRORS + ".INVALID_PRODUCER_EPOCH (47), 2.7 to 4.3",
        "storage: ProducerAppendInfo.checkProducerEpoch, 3.5 to 4.3 (before: core); UnifiedLog from 3.9.2 on",
    ),
    aliases=("INVALID_PRODUCER_EPOCH", "old epoch"),
    explains=(codes.PRODUCER_IN_ERROR,),
)  # fmt: skip
INITIALISATION_TIMED_OUT = Failure(
    code=codes.TRANSACTION_TIMED_OUT, family=Family.PRODUCER, name="Transaction timed out by the coordinator",
    signs=(
        sign("Completed rollback of ongoing transaction for transactionalId"),
        sign("attempting expiration of producer", means="Redpanda aborts its transaction, which was open for too long"),
    ),
    means="its transaction was open for longer than its timeout, and the coordinator aborted it",
    causes=(
        "One transaction holds more work than fits into transaction.timeout.ms: a slow source, a large batch.",
        "The application stood still: garbage collection, a stopped container, a call that waits.",
    ),
    is_not=("Not a second producer, though the next call of this one may be told that there is a newer producer.",),
    fix="Raise transaction.timeout.ms (up to the brokers' transaction.max.timeout.ms), or commit more often",
    commands=(_DESCRIBE, "eosctl txn list --open-longer-than 1m --client-side"),
    said_by=(
        "core: TransactionCoordinator.onEndTransactionComplete (INFO), 2.0 to 4.3",
    ),
    aliases=("transaction.timeout.ms", "transaction expired"),
    explains=(
        codes.PRODUCER_FENCED, codes.INVALID_PRODUCER_EPOCH, codes.INVALID_TXN_STATE, codes.PRODUCER_IN_ERROR,
        codes.TASK_FENCED_OR_EXPIRED, codes.TASK_FENCED, codes.FLINK_COMMIT_INVALID, codes.FLINK_COMMIT_FENCED,
    ),
)  # fmt: skip
PID_MAPPING = Failure(
    code=codes.INVALID_PID_MAPPING, family=Family.PRODUCER, name="InvalidPidMappingException",
    signs=(
        sign("InvalidPidMappingException"), sign("INVALID_PRODUCER_ID_MAPPING"),
        sign("producer id which is not currently assigned to its transactional id"),
    ),
    means="the coordinator has forgotten its transactional id, which nothing used for transactional.id.expiration.ms",
    causes=(
        "The application was idle for longer than the brokers' transactional.id.expiration.ms (7 days by default).",
        "The id was used by another producer since, which got another producer id.",
        "__transaction_state lost records, or was recreated.",
    ),
    is_not=(
        "Not a fencing: nobody took the id. No restart of brokers is needed.",
        "Not a lost transaction: an id is forgotten only while none is open.",
    ),
    fix="Close the producer and make a new one: initTransactions gives the id a new producer id. For idle applications "
    "raise transactional.id.expiration.ms, or commit something now and then",
    commands=(_DESCRIBE, "eosctl txn applications"),
    versions=(
        VersionNote("before 2.5",
        "fatal for Streams threads; from 2.5 on a producer raises its epoch by itself where it "
                    "can (KIP-360); an expired id does not allow it"),
        VersionNote("4.3", "Streams handles it as a migrated task, and makes a new producer (4.3.1)"),
    ),
    said_by=(_ERRORS + ".INVALID_PRODUCER_ID_MAPPING (49), 0.11 to 4.3",),
    aliases=("InvalidPidMapping", "INVALID_PRODUCER_ID_MAPPING", "transactional.id.expiration.ms"),
    explains=(codes.PRODUCER_IN_ERROR, codes.STREAMS_TASK_MIGRATED),
)  # fmt: skip
TXN_STATE = Failure(
    code=codes.INVALID_TXN_STATE, family=Family.PRODUCER, name="InvalidTxnStateException",
    signs=(
        sign("InvalidTxnStateException"), sign("attempted a transactional operation in an invalid state"),
        sign("INVALID_TXN_STATE"), sign("InvalidTxnStateError"), sign("errc::invalid_txn_state"),
        sign(
            "but received transaction marker result to send",
            means="a coordinator was asked to commit a transaction that it had ended the other way",
            causes=("It aborted the transaction after its timeout, while the commit was on its way.",),
        ),
    ),
    means="its transaction is in a state that does not allow the call: ended already, or never begun",
    causes=(
        "The coordinator aborted it after its timeout (4.0 and newer; older brokers say ProducerFencedException).",
        "A commit that had no answer was done again, after the transaction had been aborted.",
        "A request of the former transaction that arrived late, on brokers without KIP-890.",
    ),
    is_not=("Not a matter of rights, and not of a second producer: the epoch was accepted.",),
    fix="Close the producer and make a new one; take the transaction for aborted until its records were read back",
    commands=(_DESCRIBE, "eosctl txn log {id}"),
    versions=(
        VersionNote(_TV2,
        "the answer to a commit after the timeout (seen on 4.3.1; 3.9.2 says ProducerFencedException)"),
        VersionNote("4.0 to 4.4.0 with transaction.version=2",
        "a commit that is on its way while the coordinator aborts gets "
                    "it, too, where it should be told that it is fenced: a Streams thread dies of it (KAFKA-20785)"),
    ),
    said_by=(_ERRORS + ".INVALID_TXN_STATE (48), 0.11 to 4.3", "core: TransactionCoordinator.endTransaction"),
    aliases=("INVALID_TXN_STATE", "InvalidTxnState", "KAFKA-20785"),
    explains=(codes.PRODUCER_IN_ERROR,),
)  # fmt: skip
ABORTABLE = Failure(
    code=codes.TRANSACTION_ABORTABLE, family=Family.PRODUCER, name="TransactionAbortableException",
    signs=(
        sign("TransactionAbortableException"), sign("TRANSACTION_ABORTABLE"),
        sign("The server encountered an error with the transaction"),
    ),
    means="the broker could not verify that what it was sent belongs to an open transaction of the producer",
    causes=(
        "A record arrived after its transaction had ended: a delayed request, which would have been a hanging "
        "transaction before.",
        "The coordinator did not answer the partition's leader in time.",
    ),
    is_not=("Not fatal: the same producer goes on after abortTransaction.", "Not a fenced producer."),
    fix="Call abortTransaction, and do the transaction again with the same producer",
    commands=(_DESCRIBE,),
    versions=(
        VersionNote("before 3.8", "clients don't know the error: they get InvalidTxnStateException, which is fatal"),
        VersionNote("brokers 3.6 and newer",
        "verification exists (KIP-890, transaction.partition.verification.enable)"),
    ),
    said_by=(_ERRORS + ".TRANSACTION_ABORTABLE (120), 3.8 to 4.3", "core: AddPartitionsToTxnManager, 3.6 to 4.3"),
    aliases=("TransactionAbortable", "KIP-890"),
    explains=(codes.PRODUCER_IN_ERROR,),
)  # fmt: skip
SEQUENCE = Failure(
    code=codes.OUT_OF_ORDER_SEQUENCE, family=Family.PRODUCER, name="OutOfOrderSequenceException",
    signs=(
        sign("OutOfOrderSequenceException"), sign("Out of order sequence number for producer"),
        sign("received an out of order sequence number"), sign("OUT_OF_ORDER_SEQUENCE_NUMBER"),
    ),
    means="a partition misses an earlier batch of the producer",
    causes=(
        "An earlier batch was given up after delivery.timeout.ms (librdkafka: message.timeout.ms), and later ones "
        "came.",
        "The leader lost data: an unclean election, or acks below all elsewhere.",
        "The producer's state was deleted with its records, by retention or DeleteRecords.",
    ),
    is_not=("Not the first failure, often: look for expired batches before it in the client's log.",),
    fix="Abort the transaction, which resets the sequences (2.5 and newer); else make a new producer",
    commands=("eosctl txn producers --topic {topic}",),
    versions=(VersionNote("before 2.5", "fatal for a transactional producer; later it raises its epoch (KIP-360)"),),
    said_by=(
        _ERRORS + ".OUT_OF_ORDER_SEQUENCE_NUMBER (45), 0.11 to 4.3",
        "storage: ProducerAppendInfo.checkSequence, 3.5 to 4.3 (before: core)",
    ),
    aliases=("OUT_OF_ORDER_SEQUENCE_NUMBER", "OutOfOrderSequence"),
)  # fmt: skip
UNKNOWN_ID = Failure(
    code=codes.UNKNOWN_PRODUCER_ID, family=Family.PRODUCER, name="UnknownProducerIdException",
    signs=(
        sign("UnknownProducerIdException"), sign("could not locate the producer metadata"),
        sign("Broker: Unknown Producer Id"), sign("UNKNOWN_PRODUCER_ID"),
    ),
    means="a partition has forgotten its producer, whose records were deleted",
    causes=(
        "Retention, or Streams' DeleteRecords on repartition topics, removed the producer's last records.",
        "The producer was idle for longer than producer.id.expiration.ms.",
    ),
    is_not=("Not a loss of what was committed.",
    "Not an expired transactional id: that is InvalidPidMappingException."),
    fix="Upgrade brokers to 2.4, and clients to 2.5, or newer; until then raise the topic's retention",
    commands=("eosctl txn producers --topic {topic}",),
    versions=(
        VersionNote("2.4 and newer",
        "brokers keep a producer's state for producer.id.expiration.ms, whatever becomes of "
                    "its records, and don't send the error any more (KIP-360)"),
    ),
    said_by=(_ERRORS + ".UNKNOWN_PRODUCER_ID (59), 1.0 to 4.3",),
    aliases=("UNKNOWN_PRODUCER_ID", "UnknownProducerId", "KAFKA-7190"),
)  # fmt: skip
DUPLICATE = Failure(
    code=codes.DUPLICATE_SEQUENCE, family=Family.PRODUCER, name="DuplicateSequenceException",
    signs=(sign("DuplicateSequenceException"), sign("DuplicateSequenceNumberException"), sign(
        "DUPLICATE_SEQUENCE_NUMBER"), sign("received a duplicate sequence number")),
    means="a batch came a second time, later than the last five of its producer",
    causes=("An answer was lost, and the batch was sent again after others had been written.",),
    is_not=("Not a duplicate in the topic: the second batch was refused. Java clients take it for success.",),
    fix="None, where only a broker's log has it; a client other than Java's that fails of it needs an upgrade",
    versions=(
        VersionNote("3.5 to 4.4", "no Apache broker throws it: in the jars of 3.5.1, 3.9.2, 4.3.1 and 4.4.0 only "
                    "Errors names the class"),
    ),
    said_by=(_ERRORS + ".DUPLICATE_SEQUENCE_NUMBER (46), 0.11 to 4.3", "kafka-clients: Sender.completeBatch"),
    aliases=("DuplicateSequence",),
)  # fmt: skip
EXPIRED_RECORDS = Failure(
    code=codes.RECORDS_EXPIRED, family=Family.PRODUCER, name="Expiring records: delivery.timeout.ms has passed",
    signs=(sign("record(s) for", "has passed since batch creation"),),
    means="records were not confirmed within delivery.timeout.ms",
    causes=(
        "The partition has no leader, or fewer replicas in sync than min.insync.replicas.",
        "The brokers' quota, or a broker that is too slow.",
        "The broker refuses the batch each time, for its sequence for example: then its log says why.",
    ),
    is_not=("Not proof that nothing was written: a lost answer looks the same. In a transaction, abort decides.",),
    fix="See to the partition's leader and its replicas; abort the transaction, and send again",
    said_by=("kafka-clients: Sender.failExpiredBatch, 2.1 to 4.3",),
    explains=(codes.PRODUCER_IN_ERROR,),
)  # fmt: skip
IN_ERROR = Failure(
    code=codes.PRODUCER_IN_ERROR, family=Family.PRODUCER,
    name="Cannot execute transactional method because we are in an error state",
    signs=(
        sign("Cannot execute transactional method because we are in an error state"),
        sign("at least one previous transactional or idempotent request has failed with errors"),
        sign("Failing batch since transaction was aborted"), sign(
            "because of previous invalid state transition attempt"),
        sign(
            "Invalid transition attempted from state INITIALIZING to state",
            means="its initTransactions had not succeeded",
            causes=(
                "initTransactions failed or timed out, and the application aborted or began all the same: often "
                "__transaction_state can't be created or written, as the cluster has fewer brokers than "
                "transaction.state.log.replication.factor (3) or transaction.state.log.min.isr (2).",
            ),
            fix="See the first failure of this producer before it, and `eosctl txn coordinator {id}`; then make a new "
            "one",
        ),
        sign("Invalid transition attempted from state"),
        sign("Transaction state exception: Cannot call", means="the state of its producer does not allow the call"),
        sign(
            "Operation not valid in state", means="the state of its producer does not allow the call",
            causes=(
                "An earlier call failed, and the application went on: WaitPID is an initTransactions that has not "
                "succeeded, AbortableError and FatalError are failures before.",
                "Calls in another order than init, begin, send, commit.",
            ),
            fix="See the first error of this client before it: in AbortableError abort the transaction, in FatalError "
            "make a new producer, in WaitPID call initTransactions again",
        ),
    ),
    means="an earlier call of its producer failed",
    causes=(
        "What the cause below it says.",
        "The application did not look at the failure of send(), and went on to commit.",
        "beginTransaction without initTransactions, or a producer that several threads use.",
    ),
    is_not=("Not a failure of its own: the first exception of this producer is the one to read.",),
    fix="Read the cause; call abortTransaction where it allows that, else make a new producer",
    commands=(_DESCRIBE,),
    said_by=("kafka-clients: TransactionManager.maybeFailWithError and transitionTo, 0.11 to 4.3",),
    aliases=("error state", "TransactionAbortedException"),
    is_wrapper=True,
)  # fmt: skip

PRODUCERS = (
    INITIALISATION_TIMED_OUT, FENCED, EPOCH, PID_MAPPING, ABORTABLE, TXN_STATE, UNKNOWN_ID, SEQUENCE, DUPLICATE,
    EXPIRED_RECORDS, IN_ERROR,
)  # fmt: skip
