"""The Spark job of `eosctl offsets migrate`; executors need pyspark, pyarrow, numpy, msgspec and confluent_kafka."""
