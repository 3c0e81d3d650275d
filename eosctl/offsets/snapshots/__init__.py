"""Snapshots of offsets topics: record files that outlast compaction."""
