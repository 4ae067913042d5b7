"""Writes what says what is in the packages. Run by build.sh:
``python -m describe BUILD DIST ARCHITECTURE [COMPRESSION]``.

BUILD has ``lib`` and ``emulator``, as they lie in /usr/lib/nodeagent on a node. Into ``lib`` goes what
``nodeagent version`` tells. Into ``BUILD/describe/PACKAGE`` go the bill of materials, the copyright file and
the changelog, beside them the configuration of nfpm for each format, and into DIST a copy of each bill. All
follows from the sources and from what is laid out. COMPRESSION replaces the one of the packages.
"""

import gzip
import os
import sys
from pathlib import Path
from typing import Final

import yaml

from describe import build_record, changelog, configuration, dep5, inventory, sbom
from nodeagent import __version__

PACKAGING: Final = Path(__file__).resolve().parents[1]
PACKAGES: Final = {
    "nodeagent": ("lib", "nfpm.yaml"),
    "nodeagent-emulator": ("emulator", "nfpm-emulator.yaml"),
}
"""Package -> what is laid out for it, and its configuration."""
FORMATS: Final = ("deb", "rpm")


def main() -> None:
    build, dist, architecture = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    compression = "".join(sys.argv[4:])
    made_at_s = int(os.environ["SOURCE_DATE_EPOCH"])
    entries = changelog.read((PACKAGING.parent / "CHANGELOG.md").read_text(), __version__, made_at_s)
    (modules,) = (build / "lib").glob("python/lib/python*/site-packages/nodeagent")
    build_record.write(modules, architecture)
    for package, (laid_out, configured) in PACKAGES.items():
        folder = build / "describe" / package
        folder.mkdir(parents=True, exist_ok=True)
        found = inventory.of(build / laid_out)
        text = (PACKAGING / configured).read_text()
        maintainer = yaml.safe_load(text)["maintainer"]
        bill = sbom.written(found, package, __version__, architecture, made_at_s)
        (folder / "sbom.cdx.json").write_text(bill)
        (dist / f"{package}-{__version__}.{architecture}.cdx.json").write_text(bill)
        (folder / "copyright").write_text(dep5.written(found))
        of_debian = changelog.for_debian(package, entries, maintainer)
        (folder / "changelog.gz").write_bytes(gzip.compress(of_debian.encode(), mtime=0))
        of_rpm = folder / "changelog.yaml"
        of_rpm.write_text(changelog.for_nfpm(entries, maintainer))
        for each in FORMATS:
            made = configuration.of_format(text, each, dep5.expression(found), str(of_rpm), compression)
            (build / "describe" / f"{Path(configured).stem}.{each}.yaml").write_text(made)


if __name__ == "__main__":
    main()
