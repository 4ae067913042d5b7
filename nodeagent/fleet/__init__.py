"""Follows the daemons of many nodes in one process. It reads their streams, and orders nothing of them."""
