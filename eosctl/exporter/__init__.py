"""`eosctl exporter`: what the collector knows, as metrics for Prometheus; reads only."""
