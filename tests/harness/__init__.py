"""What tests of several folders start and read: the daemon, its subscriber, and kernel logs.

A test file imports from here or from a module of its own folder, never from another test file
(``tests/test_import_rule.py``).
"""
