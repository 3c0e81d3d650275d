"""The codes of warnings about files of offsets."""

from __future__ import annotations

from eosctl.codes import warning

ABSENT_BEFORE = warning(
    "absent_before", "Keys that had no record before get a tombstone, which Connect reads as no offset."
)
DELETES = warning("deletes", "The file holds deletions, and they will be written.")
NO_KEY = warning("no_key", "Records without a key are not imported, as a compacted topic takes none.")
OVER_NEWER = warning("over_newer", "Values that are newer than the file's are overwritten.")
SUPERSEDED = warning("superseded", "Of several records for one key the newer counts; the others are not imported.")
UNCHECKED = warning("unchecked", "The file does not have what was written, so that a later write would go unnoticed.")
SECRETS_HIDDEN = warning(
    "secrets_hidden",
    "Values that may be secrets are not written or printed: *** stands in their place, or the patch is left out.",
    "Where it must be exact: --with-secrets, and keep it safe.",
)
NULL_PARTITION = warning(
    "null_partition", "Offsets with a null source partition can't be part of a REST body.", "--format ndjson."
)
NOT_AN_OFFSET = warning("not_an_offset", "Values that are no offsets can't be part of a REST body.", "--format ndjson.")
OTHER_SPELLING = warning("other_spelling", "Older spellings of a key can't be part of a REST body.", "--format ndjson.")
