"""``python -m tests.forked.origin``: has loaded all commands, and becomes one by each fork asked of it."""

from importlib import import_module

from tests.forked.ending import Ending

if __name__ == "__main__":
    ending = Ending()  # before anything else is imported
    import_module("tests.forked.programs").serve(ending)
