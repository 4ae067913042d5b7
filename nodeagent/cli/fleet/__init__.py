"""What ``nodeagent fleet`` shows of many nodes, and how it runs. It follows none itself."""
