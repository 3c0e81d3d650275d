"""One connector: its state, its offsets topic, and how it is stopped and started."""
