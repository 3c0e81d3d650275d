"""`eosctl exporter`: the collector's facts as metrics for Prometheus; reads only."""
