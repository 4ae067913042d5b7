"""The rules, written down a second time and simply: what the core did is compared with what a twin says."""
