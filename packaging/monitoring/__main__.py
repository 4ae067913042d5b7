"""Writes the dashboards as JSON into ``grafana/``: ``PYTHONPATH=packaging python -m monitoring``."""

import sys
from pathlib import Path

from monitoring.dashboards import texts


def main(folder: Path = Path(__file__).parent / "grafana") -> int:
    """Nothing else in the folder is touched."""
    folder.mkdir(exist_ok=True)
    for name, text in texts().items():
        (folder / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
