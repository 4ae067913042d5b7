"""The driver ``host``: memory modules, PCI Express, services and storage clients of the node itself."""
