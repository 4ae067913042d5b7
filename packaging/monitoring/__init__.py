"""Alerts for Prometheus and dashboards for Grafana; ``python -m monitoring`` writes these as JSON."""
