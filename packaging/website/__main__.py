"""Builds the site: ``python -m website FOLDER``, with packaging on the path; called by ``./dev docs``.

FOLDER/source gets the documents and the generated references, FOLDER/html the site. A warning is an error:
a link to a page or a heading that does not exist, a page that the index does not list. Links to other sites
are not opened.
"""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from website import documents, from_codes, from_commands, from_forms, from_protos

HERE: Final = Path(__file__).parent
REFERENCE: Final = "reference"
_OPTIONS: Final = ("--fail-on-warning", "--keep-going", "--quiet", "--jobs", "auto")


def main() -> int:
    folder = Path(sys.argv[1]).resolve()
    source, html = folder / "source", folder / "html"
    for old in (source, html):
        shutil.rmtree(old, ignore_errors=True)
    documents.copy(source)
    shutil.copy(HERE / "index.md", source)
    for name, text in references().items():
        page = source / REFERENCE / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "sphinx",
        *_OPTIONS,
        "-c",
        HERE,
        "-d",
        folder / "cache",
    ]
    command += [source, html]
    return subprocess.run(command, check=False).returncode


def references() -> Mapping[str, str]:
    """The generated pages by their names below ``reference``."""
    return {
        "commands.md": from_commands.page(),
        "configuration.md": from_forms.configuration_page(),
        "tables.md": from_forms.tables_page(),
        **{f"codes/{name}": text for name, text in from_codes.pages().items()},
        **{f"api/{name}": text for name, text in from_protos.pages().items()},
    }


if __name__ == "__main__":
    sys.exit(main())
