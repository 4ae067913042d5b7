"""How the distribution nodeagent is built: without the modules of nodeagent-client, which it depends on.

Each module is in one of the two, so that both can be installed, upgraded and removed. Which are the client's
is said in ``client/pyproject.toml`` and nowhere else. setuptools calls this when it makes a wheel; an
editable installation finds both as they lie in the checkout.
"""

import tomllib
from pathlib import Path
from typing import Any, Final

from setuptools.command.build_py import build_py

_CLIENT: Final = tomllib.loads(Path(__file__).with_name("client").joinpath("pyproject.toml").read_text())
PACKAGES: Final = frozenset(_CLIENT["tool"]["setuptools"]["packages"])
MODULES: Final = frozenset(_CLIENT["tool"]["setuptools"]["py-modules"])


class WithoutClient(build_py):
    """Leaves out what the client holds: its packages as a whole, and its modules of other packages."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        found: Any = super().find_package_modules(package, package_dir)
        if package in PACKAGES:
            return []
        return [each for each in found if f"{package}.{each[1]}" not in MODULES]

    def find_data_files(self, package: str, src_dir: str) -> list[str]:
        if package in PACKAGES:
            return []
        files: list[str] = super().find_data_files(package, src_dir)
        return files
