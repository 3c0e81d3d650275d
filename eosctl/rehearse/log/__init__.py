"""What logs show in a rehearsal: values of records, source offsets, transactions."""
