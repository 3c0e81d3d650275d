"""Codes of `errors` that make a command fail."""

from __future__ import annotations

from eosctl.reference.entry import Entry

ERRORS = (
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
