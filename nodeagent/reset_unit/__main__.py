"""``python -m nodeagent.reset_unit NAME``: do the reset of the request with that name."""

from nodeagent.reset_unit.process import main

if __name__ == "__main__":
    main()
