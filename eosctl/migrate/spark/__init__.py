"""The Spark job of `eosctl offsets migrate`; imports only pyspark, pyarrow, confluent_kafka and eosctl.core."""
