"""Codes of `errors` that make a command fail."""

from __future__ import annotations

from eosctl.reference.entry import Entry

ERRORS = (
    Entry("failed", "It failed for a reason that has no code of its own.", "Read the message; -vv adds a traceback."),
    Entry(
        "not_found",
        "A group, topic, connector, id or file entry that was named does not exist.",
        "Names are case-sensitive; the `list` commands show what there is.",
    ),
    Entry(
        "no_login",
        "No Kafka client of this machine knows the SASL mechanism, so that nothing can be asked.",
        "Use a mechanism that it knows, or a confluent-kafka that was built with it.",
    ),
    Entry("unsupported", "The broker, the worker or this machine can't do it; the message names the version that can."),
    Entry(
        "protocol_error",
        "Bytes that do not follow the Kafka protocol.",
        "Check that -b leads to a Kafka broker, and to its right listener (TLS or not).",
    ),
    Entry("broker_error", "A broker answered with an error; the message has Kafka's name for it."),
    Entry("connect_error", "A Connect worker answered with an error.", "Look at the worker's log."),
    Entry("usage", "The arguments contradict each other, or one is missing.", "See --help of the command."),
    Entry(
        "input_file",
        "A file that was named is missing, unreadable or malformed.",
        "Check the path, its rights, and the line that the message names.",
    ),
    Entry(
        "unreachable",
        "A broker or a worker could not be reached.",
        "Check the address, the network, and TLS settings; see `eosctl workers list`.",
    ),
    Entry(
        "timed_out",
        "The overall deadline was reached.",
        "Give more time with --timeout, or find out who does not answer.",
    ),
    Entry(
        "not_authorized",
        "Authentication failed, or an ACL is missing.",
        "The hint has the kafka-acls line; `eosctl acls generate` has all of them.",
    ),
    Entry(
        "refused", "A safety check said no; nothing was written.", "The message says which, the hint how to satisfy it."
    ),
    Entry(
        "stale_plan",
        "What the plan was made from has changed since; nothing was written.",
        "Run the command again: it plans anew.",
    ),
    Entry(
        "unconfirmed",
        "Not agreed to, or not known to have happened: the question was not answered with yes, or a write's "
        "answer was lost.",
        "Look at the plan with --dry-run, apply it with --yes; after a lost answer read again.",
    ),
    Entry(
        "interrupted",
        "Ctrl-C or SIGTERM; the message says what was done before.",
        "Run the same command again: it goes on, or plans anew.",
    ),
    Entry(
        "worker_unreachable",
        "A worker of the group does not answer.",
        "See whether it runs; -u or --connect-map ADVERTISED=REACHABLE says where it is reached from here.",
    ),
    Entry(
        "worker_not_answering",
        "A worker can be reached and does not tell what was asked.",
        "The message has its answer; look at its log.",
    ),
    Entry(
        "undecodable",
        "A record of __transaction_state could not be decoded.",
        "Tell us with the bytes: it is another version, or damaged.",
    ),
    Entry(
        "not_as_planned",
        "Read back, some offsets are not as planned.",
        "Take the write back with the undo command that is printed.",
    ),
    Entry(
        "topics_not_created",
        "Brokers refused target topics of a migration; no offset was written.",
        "The message above it has the reason. When that is mended, go on with --plan FILE --yes --resume.",
    ),
    Entry("backup_mismatch", "Keys do not hold what a backup says.", "Has someone written since? Plan again."),
    Entry("plan_mismatch", "Keys are not what the plan says.", "Has someone written since? Plan again."),
    Entry(
        "conflicts",
        "Both sides have a value, and --conflict fail decides none.",
        "Plan again with --conflict keep-target, take-source or newest.",
    ),
    Entry(
        "not_written",
        "Not every recorded id could be fenced, so the task-count record was not written.",
        "Read why above it, and run again.",
    ),
    Entry("rescue_again", "A step of the rescue failed; those after it were not done.", "Run the same command again."),
    Entry(
        "switch_unfinished",
        "A switch between offsets topics is not finished.",
        "Run it again to go on; the hint also has the way back.",
    ),
    Entry(
        "upgrade_unfinished",
        "An upgrade is not finished: some workers are in the new mode, some are not.",
        "Go on with --resume, or go back as the hint says.",
    ),
    Entry(
        "audit_failed",
        "The write was done, and its line could not be added to the audit log.",
        "Make the file writable; the next eosctl adds it.",
    ),
)
