"""The Spark job of `eosctl offsets migrate`; executors need pyspark, pyarrow, numpy and confluent_kafka."""
