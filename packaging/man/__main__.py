"""Writes the manual pages into a folder: ``python -m man FOLDER``, with packaging on the path. Called when
the package is built; no page is committed.

What a page says comes from the help of the commands, the documents, the shipped configuration and the forms
that read it. In FOLDER, ``nodeagent`` and ``nodeagent-emulator`` are for the package of that name. Equal
sources give equal bytes: the date is that of $SOURCE_DATE_EPOCH.
"""

import datetime
import gzip
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
from markdown_it.token import Token

from man import from_click, from_configuration, from_markdown
from man.forms import OF_TABLES
from man.roff import Page, bold, plain
from nodeagent import __version__
from nodeagent.cli.main import main as commands
from nodeagent.toml.fields import requirements

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"
PACKAGING: Final = ROOT / "packaging"
EMULATOR: Final = "nodeagent-emulator"
_DESCRIPTION: Final = re.compile(r"^Description=(.*)$", re.MULTILINE)


def main() -> None:
    folder = Path(sys.argv[1])
    for page in pages():
        package = EMULATOR if page.name.startswith(EMULATOR) else "nodeagent"
        place = folder / package / f"man{page.section}" / f"{page.file_name}.gz"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(gzip.compress(page.text().encode(), mtime=0))


def pages() -> Iterator[Page]:
    whole, *others = from_click.pages(lambda name, summary: _new(name, 1, summary))
    _put_the_rest(whole)
    yield whole
    yield from others
    yield _configuration()
    yield _fault_codes()
    yield _units()


def _new(name: str, section: int, summary: str) -> Page:
    built = int(os.environ.get("SOURCE_DATE_EPOCH") or datetime.datetime.now(datetime.UTC).timestamp())
    date = datetime.datetime.fromtimestamp(built, datetime.UTC).date().isoformat()
    return Page(name, section, summary, date, f"nodeagent {__version__}")


def _put_the_rest(page: Page) -> None:
    page.heading("ENVIRONMENT")
    for name, text in sorted(_variables(from_click.context_of(commands, "nodeagent")).items()):
        page.tagged(bold(name), plain(text))
    page.heading("FILES")
    _put_files(page)
    page.heading("EXIT STATUS")
    from_markdown.put(page, from_markdown.section(DOCS / "commands.md", "Exit statuses"))
    page.see_also(("nodeagent.toml", 5), ("nodeagent-fault-codes", 5), ("nodeagent.service", 8))


def _variables(context: click.Context) -> dict[str, str]:
    """Those that stand for an option, of all commands."""
    found = {"NODEAGENT_CONFIG": "Configuration. An option --config goes before it."}
    for option in context.command.get_params(context):
        if isinstance(option, click.Option) and isinstance(option.envvar, str):
            found.setdefault(option.envvar, f"Stands for {option.opts[-1]}: {option.help}")
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            if (command := context.command.get_command(context, name)) is not None:
                found = _variables(from_click.context_of(command, name, context)) | found
    return found


def _put_files(page: Page) -> None:
    for place, holds in from_markdown.table(DOCS / "installing.md", "path"):
        page.tagged(place, holds)


def _configuration() -> Page:
    page = _new("nodeagent.toml", 5, "configuration of nodeagent")
    page.heading("SYNOPSIS")
    page.paragraph(bold("/etc/nodeagent/nodeagent.toml"))
    page.paragraph(bold("/etc/nodeagent/nodeagent.d/*.toml"))
    page.heading("DESCRIPTION")
    document = DOCS / "configuration.md"
    from_markdown.put(page, _before_sections(document))
    for title in ("Drop-ins", "If the configuration is wrong", "Keys that sites often change"):
        page.heading(title.upper())
        from_markdown.put(page, from_markdown.section(document, title), headings=False)
    from_configuration.put(page, (PACKAGING / "nodeagent.toml").read_text())
    page.heading("THE SOCKET OF JOBS")
    from_markdown.put(page, from_markdown.section(document, "The socket of jobs"), headings=False)
    page.see_also(("nodeagent", 1), ("nodeagent-config", 1), ("nodeagent-fault-codes", 5))
    return page


def _before_sections(document: Path) -> list[Token]:
    """What stands between the title and the first section."""
    given = from_markdown.tokens(document)
    end = next(at for at, each in enumerate(given) if each.type == "heading_open" and each.tag == "h2")
    return given[3:end]


def _fault_codes() -> Page:
    page = _new(
        "nodeagent-fault-codes", 5, "tables of fault codes, rules and kernel-log patterns of nodeagent"
    )
    page.heading("SYNOPSIS")
    page.paragraph(bold("/usr/share/nodeagent/fault_codes/*.toml"))
    page.paragraph(bold("/etc/nodeagent/fault_codes/*.toml"))
    page.heading("DESCRIPTION")
    from_markdown.put(page, from_markdown.tokens(DOCS / "tables.md")[3:])
    page.heading("KEYS")
    for title, form in OF_TABLES.items():
        page.subheading(title)
        for key, right in requirements(form).items():
            page.tagged(bold(key), plain(f"{right[0].upper()}{right[1:]}."))
    page.see_also(("nodeagent", 1), ("nodeagent-tables", 1), ("nodeagent-explain", 1), ("nodeagent.toml", 5))
    return page


def _units() -> Page:
    page = _new("nodeagent.service", 8, "the units that nodeagent brings to systemd")
    page.heading("DESCRIPTION")
    page.paragraph(
        plain(
            "The daemon runs as a service of systemd. What needs more rights than it, or fewer, runs in units"
            " of its own, which it starts."
        )
    )
    for path in sorted((*PACKAGING.glob("*.service"), *PACKAGING.glob("*.socket"))):
        if (described := _DESCRIPTION.search(path.read_text())) is not None:
            page.tagged(bold(path.name), plain(f"{described[1]}."))
    page.heading("RELOAD")
    page.paragraph(
        f"{bold('systemctl reload nodeagent')} (SIGHUP) reads the tables and the configuration again, with"
        " its drop\\-ins. What is wrong is refused as a whole, and all goes on as it was."
    )
    page.heading("FILES")
    _put_files(page)
    page.see_also(("nodeagent", 1), ("nodeagent.toml", 5), ("systemctl", 1), ("journalctl", 1))
    return page


if __name__ == "__main__":
    main()
