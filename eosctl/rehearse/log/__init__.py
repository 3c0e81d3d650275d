"""The logs of a rehearsal: values of records, source offsets, transactions."""
