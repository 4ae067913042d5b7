"""``python -m nodeagent.reset_unit NAME``: do the reset that a file asks for."""

from nodeagent.reset_unit.process import main

if __name__ == "__main__":
    main()
