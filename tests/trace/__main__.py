"""``python -m tests.trace line|order|job``: run one path on the real daemon and print its files.

For each process it prints the project's files whose functions ran for the event, in the order of their first
use; ``recorder`` decides which count. At the end it prints the number of files of each process and of all,
and those that docs/architecture.md does not name for this path.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn

import click

from tests.trace.document import DOCUMENT, NoSection, named_files
from tests.trace.interpreter import Checkout, NotSetUp
from tests.trace.node import TraceFailed, traced
from tests.trace.paths import PATHS

ROOT: Final = Path(__file__).resolve().parents[2]

_ROLES: Final = (
    ("nodeagent.reset_unit", "reset unit"),
    ("nodeagent.worker", "worker"),
    ("nodeagent run", "daemon"),
    ("nodeagent job run", "job supervisor"),
    ("nodeagent events", "subscriber"),
)
"""Parts of a command line, and the process that has them; the first that fits. Any other is the command."""


@dataclass(slots=True)
class Process:
    """One kind of process. ``files`` are in the order of their first use."""

    role: str
    files: dict[str, int] = field(default_factory=dict)


@click.command()
@click.argument("path", type=click.Choice(list(PATHS)))
@click.option("--count", is_flag=True, help="Print only the number of files, of all processes together.")
@click.option(
    "--checkout",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=ROOT,
    help="Trace another checkout, in which ./dev setup has run.",
)
def main(path: str, count: bool, checkout: Path) -> None:
    """Print the files that a kernel line, an order, or the recovery of a job runs through."""
    if os.geteuid() != 0:
        _fail("the daemon's sockets and resets need root: sudo ./dev trace")
    try:
        with traced(Checkout(checkout.resolve())) as node:
            PATHS[path](node)
            records = node.records()
    except (NotSetUp, TraceFailed) as error:
        _fail(str(error))
    processes = group(records)
    if not processes:
        _fail("no process recorded anything")
    together = {name for process in processes for name in process.files}
    if count:
        click.echo(len(together))
        return
    for process in processes:
        click.echo(f"\n{process.role}")
        for name in process.files:
            click.echo(f"  nodeagent/{name}")
    click.echo()
    for process in processes:
        click.echo(f"{len(process.files):4} {process.role}")
    click.echo(f"{len(together):4} all together")
    try:
        for name in not_named(processes, named_files(checkout, path)):
            click.echo(f"{DOCUMENT} does not name nodeagent/{name}")
    except (OSError, NoSection) as error:  # an older checkout
        click.echo(f"trace: {error}", err=True)


def group(records: Sequence[dict[str, Any]]) -> list[Process]:
    """The processes of each role together, in the order of their first use."""
    roles = {each["pid"]: role_of(each["command"]) for each in records if "command" in each}
    processes: dict[str, Process] = {}
    for each in sorted((each for each in records if "file" in each), key=lambda each: each["at_ns"]):
        role = roles[each["pid"]]
        processes.setdefault(role, Process(role)).files.setdefault(each["file"], each["at_ns"])
    return list(processes.values())


def not_named(processes: Sequence[Process], named: frozenset[str]) -> list[str]:
    """The files that ran and that the document does not name, in the order of their first use."""
    ran = dict.fromkeys(name for process in processes for name in process.files)
    return [name for name in ran if name not in named]


def role_of(command: Sequence[str]) -> str:
    """What a process is, by its command line."""
    line = " ".join([Path(command[1]).name, *command[2:]])
    role = next((role for part, role in _ROLES if part in line), "")
    if role == "worker":
        return f"worker {command[-1]}"
    return role or f"command {line.partition(' -')[0]}"


def _fail(reason: str) -> NoReturn:
    click.echo(f"trace: {reason}", err=True)
    sys.exit(1)


if __name__ == "__main__":
    main(prog_name="./dev trace")
