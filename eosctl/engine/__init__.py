"""Offsets in bulk: columns of Arrow from the consumer to the producer, in this process or in Spark's tasks.

`read` (newest record per key of ranges of offsets) -> `rule` (claims, the strongest of them, decisions) -> `write`
(transactions); `compare` compares the result. No file depends on Spark, a command or a plan, and nothing is imported
but pyarrow, confluent_kafka, msgspec and `eosctl.core`: all of it runs on executors.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's, which would spin for 0.1 s when loaded, and have no work
