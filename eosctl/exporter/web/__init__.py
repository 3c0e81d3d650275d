"""TLS and basic authentication of the exporter, by the web-config file of Prometheus' exporters."""
