"""The codes of the problems of files that eosctl keeps."""

from __future__ import annotations

from eosctl.codes import error, warning

AUDIT_FAILED = error(
    "audit_failed",
    "The write was done, and its line could not be added to the audit log.",
    "Make the file writable; the next eosctl adds it.",
)
DAMAGED_HISTORY = warning(
    "damaged_history", "Lines of the audit log were cut off by a crash or a full disk, and are left out."
)
PENDING_NOT_OURS = warning(
    "pending_not_ours",
    "Others on this machine could have made or changed a file of a write that is under way: no line is made of it.",
    "Look at it; if nobody of yours made it, remove it and close the folder to others.",
)
JOURNAL_NOT_CLOSED = warning(
    "journal_not_closed",
    "The work was done, and the last line of its journal could not be written.",
    "Make room; the next run says that this one was cut off, and finds nothing to do.",
)
