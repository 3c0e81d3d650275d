"""The Spark job of `eosctl offsets migrate`: what executors import needs pyspark, pyarrow, numpy and confluent_kafka."""
