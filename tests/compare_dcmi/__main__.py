"""``python -m tests.compare_dcmi SOURCE``: what the vendor's libdcmi answers, and the emulator's does not.

SOURCE is a copy of the vendor's driver (github hicann/driver). Both libraries are asked the same of the same
nodes. A difference that is known has a row with its reason in ``known.toml``; one that is not makes the exit
status 1. It judges nothing of nodeagent itself.
"""

import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import click

from tests.compare_dcmi.build import BuildFailed, build
from tests.compare_dcmi.compare import Difference, compare
from tests.compare_dcmi.known import load
from tests.compare_dcmi.observed import all_stories
from tests.compare_dcmi.resets import all_resets, lines_of
from tests.compare_dcmi.states import PRODUCTS, STATES


@click.command()
@click.argument("source", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--product", "products", multiple=True, type=click.Choice(PRODUCTS), help="Only these.")
@click.option("--known", "shows_known", is_flag=True, help="Show the known differences, too.")
@click.option(
    "--resets", is_flag=True, help="Instead, have the daemon reset chips over the vendor's library."
)
@click.option(
    "--observed", is_flag=True, help="Instead, show what the daemon sees over the vendor's library."
)
def main(source: Path, products: tuple[str, ...], shows_known: bool, resets: bool, observed: bool) -> None:
    """Compare the emulator's libdcmi with the one built from SOURCE, a copy of github hicann/driver."""
    with tempfile.TemporaryDirectory(prefix="compare-dcmi-") as name:
        try:
            library = build(source.resolve(), Path(name))
        except BuildFailed as error:
            raise click.ClickException(str(error)) from None
        if resets or observed:
            wrong = (_reset(library) if resets else 0) + (_observe(library) if observed else 0)
        else:
            wrong = _compare(library, Path(name), products, shows_known)
    sys.exit(1 if wrong else 0)


def _reset(library: Path) -> int:
    """How many went wrong."""
    wrong = 0
    for course in all_resets(library):
        click.echo("\n".join(lines_of(course)))
        wrong += bool(course.wrong)
    return wrong


def _observe(library: Path) -> int:
    """How many were not seen as they are."""
    wrong = 0
    for seen in all_stories(library):
        click.echo(f"{seen.story}: {'' if seen.is_right else 'WRONG: '}{seen.words}")
        for line in seen.lines:
            click.echo(f"    {line}")
        wrong += not seen.is_right
    return wrong


def _compare(library: Path, folder: Path, products: tuple[str, ...], shows_known: bool) -> int:
    """How many differences have no reason."""
    known = load()
    found = [
        (each, known.explain(each))
        for product in products or PRODUCTS
        for state in STATES
        for each in compare(product, state, library, folder)
    ]
    strange = [each for each, reason in found if not reason]
    _show((each for each, _ in found) if shows_known else strange)
    for row in () if products else known.unused():
        click.echo(f"no difference needs this row any more: {row}")
    click.echo(f"{len(found)} differences, {len(strange)} of them not known")
    return len(strange)


def _show(differences: Iterable[Difference]) -> None:
    """The same at several addresses in one line."""
    addresses: dict[tuple[str, str, str, str, str], list[str]] = defaultdict(list)
    for each in differences:
        call, _, address = each.call.partition(" ")
        addresses[each.product, each.state, call, each.vendor, each.emulator].append(address)
    for (product, state, call, vendor, emulator), where in addresses.items():
        click.echo(
            f"{product}, {state}: {call} {', '.join(where)}\n    vendor {vendor}\n    emulator {emulator}"
        )


if __name__ == "__main__":
    main()
