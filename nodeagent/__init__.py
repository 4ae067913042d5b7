"""nodeagent: finds faulty chips, links and host parts of an AI node, decides, acts, and tells."""

__version__ = "0.3.0"
