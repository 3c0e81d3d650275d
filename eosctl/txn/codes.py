"""The codes of the problems of transactions and of transactional ids."""

from __future__ import annotations

from eosctl.codes import error, finding, warning
from eosctl.core.allowances import Waiver

IDS_MAY_BE_HIDDEN = warning(
    "ids_may_be_hidden",
    "Brokers list only ids that one may DESCRIBE, and do not say that there are others.",
    "Grant DESCRIBE on every TransactionalId before relying on an absence.",
)
PRODUCERS_UNKNOWN = warning(
    "producers_unknown", "Who holds a transaction open could not be found out.", "Grant READ on the topic."
)
NOT_HANGING = warning("not_hanging", "Forced: a coordinator still knows the transaction, and gets no notice.")
COORDINATOR_HAS_IT = error(
    "coordinator_has_it",
    "The transaction is not hanging: its coordinator has it open, and will end it.",
    f"`eosctl fence` with its id ends it now. {Waiver.FORCE} writes the marker without the coordinator.",
)
COORDINATOR_UNREAD = error(
    "coordinator_unread",
    "A coordinator that may have the transaction open could not be asked, so that it may be a live one.",
    f"Bring the broker back, or grant DESCRIBE on the id and on __transaction_state. {Waiver.UNREAD_COORDINATOR} "
    "aborts all the same.",
)
ID_MAY_BE_HIDDEN = error(
    "id_may_be_hidden",
    "No listed id uses the producer id, and brokers leave out ids that one may not DESCRIBE: it may be a live one.",
    f"Grant READ on __transaction_state, whose records name every id. {Waiver.HIDDEN_ID} aborts all the same.",
)
COMMIT_DECIDED = error(
    "commit_decided",
    "The coordinator committed the transaction, and a marker was never written: an abort loses committed records, or "
    "delivers them twice.",
    f"`eosctl txn complete --as-decided` writes the COMMIT markers. {Waiver.LOSE_COMMITTED} aborts all the same.",
)
COMMIT_NOT_READ = error(
    "commit_not_read",
    "The coordinators' log has no commit of this very transaction, so that COMMIT markers would be a guess.",
    "`eosctl txn log` shows what it has. `eosctl txn abort` ends a hanging transaction the other way.",
)
PARTS_UNSEEN = error(
    "parts_unseen",
    "The transaction may be open on partitions that could not be looked at; to end a part of it tears it.",
    f"Grant READ on the topics, or bring the broker back. {Waiver.UNSEEN_PARTS} ends what can be seen.",
)
DECISION_UNKNOWN = warning(
    "decision_unknown",
    "Whether the coordinator committed the transaction can't be known any more; if it did, an abort loses records.",
    "Compare what the source has sent with the topic before you abort, or read it again afterwards.",
)
PART_ENDED_ALONE = warning(
    "part_ended_alone",
    f"One partition is ended alone ({Waiver.ONLY_THIS_PARTITION}): other parts of the transaction stay open.",
    "Look for them: `eosctl txn hanging`.",
)
UNDECODABLE = error(
    "undecodable",
    "A record of __transaction_state could not be decoded.",
    "Tell us with the bytes: it is another version, or damaged.",
)
NOT_CHECKED = finding("not_checked", "A check could not run; its result is unknown.", "Fix what the message names.")

TRANSACTION_NOT_ENDED = finding(
    "transaction_not_ended",
    "A coordinator has decided the end of a transaction more than a minute ago (PrepareCommit, PrepareAbort), or ought "
    "to have aborted it at its timeout, and has not ended it. Until it does, its transactional id can't be used, nor "
    "fenced, and readers of committed records wait behind it. `fence` names one at once that keeps it from fencing.",
    "The message has the most probable cause, say a partition without a leader, or too few replicas in sync: mend "
    "that, and the coordinator goes on by itself.",
)

SHARED_PREFIX = warning(
    "shared_prefix",
    "Two applications have ids of one prefix. A Flink sink with pooled names aborts every open transaction on its "
    "topics whose id begins with its prefix, also that of another job.",
    "Give each application a prefix of its own that begins no other one's.",
)
TIMEOUT_ABOVE_MAXIMUM = warning(
    "timeout_above_maximum",
    "Producers have a transaction.timeout.ms above the brokers' transaction.max.timeout.ms, which was lowered since: "
    "they go on, and their next InitProducerId is refused.",
    "Lower transaction.timeout.ms of the application, or raise transaction.max.timeout.ms of the brokers.",
)
IDS_EXPIRE = warning(
    "ids_expire",
    "An application has not begun a transaction for nearly as long as brokers keep an id that nobody uses "
    "(transactional.id.expiration.ms). After that a producer that is still running fails at its next transaction with "
    "InvalidPidMappingException, and must be recreated; one that starts gets a new producer id.",
    "Nothing, if the application is gone: brokers remove its ids. Else restart it after the pause, or raise "
    "transactional.id.expiration.ms.",
)
IDS_GROW = warning(
    "ids_grow",
    "An application keeps adding transactional ids: coordinators hold each in memory until it expires.",
    "Flink: TransactionNamingStrategy.POOLING (connector 4.0). Others: give producers a fixed id, not a random one. "
    "A lower transactional.id.expiration.ms of the brokers lets go of them sooner.",
)
EPOCHS_NEARLY_SPENT = warning(
    "epochs_nearly_spent",
    "The epoch of an id is 32700 or more. At 32766 its next InitProducerId gives it a new producer id at epoch 0, "
    "which harms nothing; but before transaction.version 2 only starts and fences of a producer, and timeouts, raise "
    "it: there were that many. With it each transaction does, which is normal, but on brokers of 4.0 to 4.2 one that "
    "times out or is fenced at the last epoch may stay open for ever (KAFKA-19367 and KAFKA-20090).",
    "Before transaction.version 2: see whether the producer is recreated again and again. Brokers of 4.0 to 4.2: "
    "upgrade to 4.3.1 or newer.",
)
AMBIGUOUS_IDS = warning(
    "ambiguous_ids",
    "The transactional ids of an application can be read in several ways, and nothing in the cluster shows which one "
    "it is.",
    "Ask whoever runs it before fencing or aborting anything of it.",
)
LOOK_NOT_KEPT = warning(
    "look_not_kept",
    "What was counted could not be kept, so that the next look can't say what has grown since.",
    "Make the state folder writable, or add --no-remember.",
)
REMARKS = (SHARED_PREFIX, TIMEOUT_ABOVE_MAXIMUM, IDS_EXPIRE, IDS_GROW, EPOCHS_NEARLY_SPENT, AMBIGUOUS_IDS)
