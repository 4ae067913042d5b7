"""``python -m nodeagent.worker NAME``: run the worker of one driver on this process's pipes."""

from nodeagent.worker.main import main

if __name__ == "__main__":
    main()
