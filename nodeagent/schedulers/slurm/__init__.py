"""Drains and resumes this node by its verdicts, and has jobs run elsewhere if the site says so."""
