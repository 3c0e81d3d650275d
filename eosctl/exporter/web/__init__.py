"""TLS and basic authentication of the exporter, by the web-config file that other Prometheus exporters take."""
