"""Programs that act for schedulers."""
