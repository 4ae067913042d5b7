#!/usr/bin/env python3
"""Builds nodeagent-job.pyz: the supervisor of jobs as one file for any image with Python 3.10 or later.

The same sources give the same bytes, whoever builds it and when.

    build_job_pyz.py FILE
"""

import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
SHEBANG: Final = b"#!/usr/bin/env python3\n"
EARLIEST: Final = (1980, 1, 1, 0, 0, 0)
"""Of what a zip file can say."""

MAIN: Final = """\
import sys

from nodeagent.job.main import end_with

end_with(sys.argv[1:])
"""


def contents() -> Iterator[tuple[str, bytes]]:
    """(name, content), sorted."""
    sources = [
        ROOT / "nodeagent/__init__.py",
        ROOT / "nodeagent_job.py",
        *(ROOT / "nodeagent/job").rglob("*.py"),
    ]
    found = {str(source.relative_to(ROOT)): source.read_bytes() for source in sources}
    yield from sorted({"__main__.py": MAIN.encode(), **found}.items())


def build(target: Path) -> None:
    with target.open("wb") as opened:
        opened.write(SHEBANG)
        with zipfile.ZipFile(opened, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name, content in contents():
                entry = zipfile.ZipInfo(name, EARLIEST)
                entry.external_attr = 0o644 << 16
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, content)
    target.chmod(0o755)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
