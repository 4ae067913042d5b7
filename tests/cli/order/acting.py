"""A daemon on eight emulated chips that are reset together, whose resets wait for approval."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nodeagent.cli.local.emulator import configuration_of
from nodeagent.emulator.node import EmulatedNode
from tests.harness.node import Node
from tests.waiting import Lines

CHIPS = [f"npu{number}" for number in range(8)]
RESET_NEEDED = 0x80E18005
"""HBMC parity error: RestartNPU, in every mode a reset."""


@dataclass(frozen=True)
class Acting:
    node: Node
    chips: EmulatedNode
    stream: Lines

    @property
    def control_socket(self) -> Path:
        return self.node.configuration.parent / "c.sock"


@contextmanager
def acting(
    folder: Path, mode: str = "ask", more: str = "", description: str = "8x910B", announce: str = "5s"
) -> Iterator[Acting]:
    """Every chip has been seen. ``more`` are lines of ``[reset]``."""
    chips = EmulatedNode.create(folder / "chips", description)
    node = Node.within(
        folder,
        f"""{configuration_of(chips)}
poll_interval = "100ms"

[reset]
mode = "{mode}"
announce = "{announce}"
run_dir = "{folder}/reset"
do_not_touch = "{folder}/do-not-touch"
{more}
""",
    )
    with node.daemon() as stream:
        for _ in ("node", *chips.names()):
            stream.until(" ALLOW ")
        yield Acting(node, chips, stream)
