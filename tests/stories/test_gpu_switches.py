"""What NVSwitches say in the kernel log: each SXid as the tables have it, and of its companions nothing."""

import pytest

from nodeagent.client import EventKind
from nodeagent.core.catalog import Settings
from nodeagent.tables.load import load_catalog
from tests.stories.conftest import LaunchGpus, Subscribe
from tests.stories.daemon import ROOT
from tests.stories.subscriber import without_gap

AT_ONE_SWITCH = 200


def numbers() -> list[int]:
    """Every SXid that has a row."""
    rows = load_catalog([ROOT / "fault_codes"], Settings()).catalog.rows.values()
    codes = (row.code.removeprefix("SXID_") for row in rows if row.code.startswith("SXID_"))
    return sorted(int(code) for code in codes if code.isdigit())


def switch_of(place: int) -> str:
    return f"0000:{0xC0 + place // AT_ONE_SWITCH:02x}:00.0"


def lines_of(place: int, sxid: int, word: str) -> tuple[str, ...]:
    """The line itself, and two that the driver writes of the same error."""
    begin = f"nvidia-nvswitch{place // AT_ONE_SWITCH}: SXid (PCI:{switch_of(place)}): {sxid:05d}, "
    return (
        f"{begin}{word}Link 32 something failed (First)",
        f"{begin}Severity 1 Engine instance 32 Sub-engine instance 00",
        f"{begin}Data {{0x0000c000, 0x00000000, 0x80000000}}",
    )


@pytest.mark.parametrize("word", ["Fatal", "Non-fatal", ""])
async def test_all_398_sxids_are_told_once_each_as_explain_says_and_their_companions_not(
    launch_gpus: LaunchGpus, subscribe: Subscribe, word: str
) -> None:
    daemon = launch_gpus("8xH100")
    await daemon.start()
    subscriber = subscribe(daemon)
    await subscriber.follow()
    sxids = numbers()
    assert len(sxids) == 398
    for place, sxid in enumerate(sxids):
        daemon.say(*lines_of(place, sxid, f"{word}, " if word else ""))
    daemon.say("NVRM: GPU0 nvidia-peermem: ERROR detected invalid context")
    await subscriber.raised("NV_PEERMEM")

    detail = f".{word}" if word else ""
    explained = await daemon.explained([f"SXID_{sxid}{detail}" for sxid in sxids])
    switches = {switch_of(place) for place in range(len(sxids))}
    told = [event for event in subscriber.events if event.device in switches and event.code]
    assert [(event.kind, event.device, event.code, event.condition_level) for event in told] == [
        (EventKind.RAISED, switch_of(place), row["code"], row["level"]) for place, row in enumerate(explained)
    ]
    assert {row["affects"] for row in explained} == {"node"}
    assert without_gap(subscriber.events)
