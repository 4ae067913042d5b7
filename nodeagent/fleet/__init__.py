"""Follows the daemons of many nodes in one process. It reads what they say, and orders nothing of them."""
