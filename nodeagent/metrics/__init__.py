"""Prometheus metrics, and the HTTP server that is scraped."""
