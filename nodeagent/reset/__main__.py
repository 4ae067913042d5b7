"""``python -m nodeagent.reset NAME``: do the reset that a file asks for."""

from nodeagent.reset.process import main

if __name__ == "__main__":
    main()
