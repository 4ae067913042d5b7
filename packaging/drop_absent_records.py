"""Drops from what pip recorded of each distribution the files that the package leaves out.

    drop_absent_records.py SITE_PACKAGES

What is left is true on the node, where importlib.metadata reads it. Lines and their order stay as they are.
Source: the Python packaging specification "Recording installed projects".
"""

import csv
import sys
from pathlib import Path


def drop_absent(record: Path) -> None:
    site = record.parent.parent
    with record.open(newline="") as opened:
        kept = [line for line in csv.reader(opened) if (site / line[0]).exists()]
    with record.open("w", newline="") as opened:
        csv.writer(opened, lineterminator="\n").writerows(kept)


if __name__ == "__main__":
    for record in sorted(Path(sys.argv[1]).glob("*.dist-info/RECORD")):
        drop_absent(record)
