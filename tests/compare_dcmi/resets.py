"""Resets by the real daemon over the vendor's library: what is announced has to be exactly what is reset.

Each begins with a fault, or a chip that drops, and ends with polls of every member or with a refusal.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nodeagent.client import EventKind
from tests.reset.acting import Acting, acting

GRACE_S: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """``ends``: how the end of the reset begins; where it is refused nothing may have been reset."""

    product: str
    device: str
    drops: bool = False
    ends: str = "done: verified"


CASES: Final = (
    Case(product="8x910B", device="npu3"),
    Case(product="8x910B", device="npu3", drops=True),
    Case(product="8x800IA2", device="npu2"),
    Case(product="16xA3", device="npu8"),
    Case(product="16xA3", device="npu8", drops=True, ends="refused: the library does not list npu8"),
    Case(product="16x9000A3", device="npu5"),
    Case(product="4x300IDuo", device="npu1"),
    Case(product="4x310P", device="npu1"),
)


def all_resets(library: Path) -> Iterator[tuple[Case, str, bool]]:
    """Of each case what came of it, in words, and whether that is right."""
    for case in CASES:
        with tempfile.TemporaryDirectory(prefix="compare-dcmi-") as folder:
            told, right = asyncio.run(_reset(case, library, Path(folder)))
        yield case, told, right


async def _reset(case: Case, library: Path, folder: Path) -> tuple[str, bool]:
    async with acting(folder, case.product) as npus:
        shutil.copyfile(library, npus.node.dcmi)
        await npus.start()
        await npus.daemon.comes(lambda: _all_may_be_used(npus), "verdicts")
        if case.drops:
            npus.node.drop(case.device)
        else:
            npus.break_(case.device)
        await npus.told(EventKind.ACTION_PROPOSED, f"reset of {case.device}")
        npus.pass_time(GRACE_S)
        finished = await npus.told(EventKind.ACTION_FINISHED, "")
        announced = set(finished.evidence["devices"].split(", "))
        hit = {name for name in npus.node.names() if npus.node.chip(name).resets}
    is_done = case.ends.startswith("done")
    told = (
        f"announced {', '.join(sorted(announced))}; reset {', '.join(sorted(hit)) or 'none'}; {finished.why}"
    )
    return told, finished.why.startswith(case.ends) and hit == (announced if is_done else set())


async def _all_may_be_used(npus: Acting) -> bool:
    return set((await npus.verdicts()).values()) == {"ALLOW"}
