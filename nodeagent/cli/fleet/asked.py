"""What the command line of ``nodeagent fleet`` asks for, and whether it goes together."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from nodeagent.client import EventKind
from nodeagent.fleet.credentials import CertificateFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """``command`` is that of --exec, in words; () for none."""

    nodes: str
    once: bool
    every: bool
    in_json: bool
    kinds: Sequence[EventKind]
    command: Sequence[str]
    at_once: int
    positions: Path | None
    file_sd: Path | None
    file_sd_port: int
    certificates: CertificateFiles | None


def certificates(ca: Path | None, cert: Path | None, key: Path | None) -> CertificateFiles | None:
    """Raises ``UsageError`` where only some are named."""
    if ca is None and cert is None and key is None:
        return None
    if ca is None or cert is None or key is None:
        raise click.UsageError("--ca, --cert and --key go together: name all three, or none")
    return CertificateFiles(authorities=ca, certificate=cert, key=key)


def check_together(asked: Asked) -> None:
    """Raises ``UsageError``."""
    if not asked.once:
        return
    for option, is_given in (
        ("--exec", bool(asked.command)),
        ("--kind", bool(asked.kinds)),
        ("--positions", asked.positions is not None),
    ):
        if is_given:
            raise click.UsageError(f"{option} is about events: leave it out, or leave out --once")
