"""The rule of what commands print: all through ``nodeagent.cli.shared.output``, which makes it printable."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT = Path(__file__).parent.parent
PACKAGES: Final = ("cli", "export", "fleet", "replay", "schedulers")
"""Commands, and what runs in their processes. The lines of the daemon go to the log: see ``foreground``."""

WAYS_OUT: Final = frozenset(
    {
        *("print", "breakpoint", "input"),
        *(f"click.{name}" for name in ("echo", "secho", "style", "clear", "prompt", "confirm", "pause")),
        *("click.echo_via_pager", "click.progressbar", "click.edit", "click.get_text_stream"),
        *("click.get_binary_stream", "click.open_file"),
        *("sys.stdout", "sys.stderr", "sys.__stdout__", "sys.__stderr__"),
        *("rich.console.Console", "rich.live.Live", "rich.print"),
        *("os.write", "os.system", "logging.StreamHandler", "logging.basicConfig", "traceback.print_exc"),
    }
)
ALLOWED: Final[Mapping[str, frozenset[str]]] = {
    "cli/shared/output.py": frozenset(
        {
            "click.echo",
            "click.echo_via_pager",
            "click.style",
            "click.clear",
            "click.confirm",
            "sys.stdout",
            "sys.stderr",
        }
    ),
    # Asked whether it is a terminal.
    "cli/top/command.py": frozenset({"sys.stdout"}),
    # It draws pieces that it makes printable, and lines that output.py has written.
    "cli/top/terminal.py": frozenset({"rich.console.Console", "rich.live.Live"}),
    # Each of its formatters makes every line printable.
    "cli/shared/foreground.py": frozenset({"sys.stderr", "logging.StreamHandler", "logging.basicConfig"}),
    # A process whose output goes into an archive.
    "cli/bundle/collecting.py": frozenset({"os.write"}),
    "cli/bundle/sources.py": frozenset({"os.write", "sys.stdout", "sys.stderr"}),
    # A file is read.
    "cli/order/report.py": frozenset({"click.open_file"}),
    # A program of the operator's own writes there, not we.
    "fleet/delivery.py": frozenset({"sys.stderr"}),
}


def sources() -> list[Path]:
    return [file for name in PACKAGES for file in sorted((ROOT / "nodeagent" / name).rglob("*.py"))]


def ways_out(source: Path) -> Iterator[str]:
    """Those that the file names: as they are called in full, or imported by themselves."""
    for node in ast.walk(ast.parse(source.read_text(), str(source))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            named = f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.Name):
            named = node.id
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
            continue
        else:
            continue
        yield named


def test_nothing_is_printed_but_through_the_module_that_makes_it_printable() -> None:
    found = {
        (name, way)
        for source in sources()
        for name in [str(source.relative_to(ROOT / "nodeagent"))]
        for way in set(ways_out(source)) & WAYS_OUT - ALLOWED.get(name, frozenset())
    }

    assert found == set()


def test_what_is_allowed_is_used() -> None:
    """Else it would stand for something that has gone."""
    for name, allowed in ALLOWED.items():
        assert allowed <= set(ways_out(ROOT / "nodeagent" / name)), name
