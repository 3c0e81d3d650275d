"""What is read of a partition's log: where it begins and ends, its batches as they lie there, and what is in those."""
