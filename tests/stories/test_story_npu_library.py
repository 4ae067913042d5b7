"""The NPUs' library cannot be had, or shows fewer chips than PCI: reported clearly once, never as healthy."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nodeagent.client import EventKind, Level, Verdict
from nodeagent.drivers.ascend.watched_chip import REMOVED
from tests.harness.subscriber import without_gap
from tests.stories.npus import CHIPS, DEVICE_LOST, Npus, eight_npus

GOOD, FAULTY, UNKNOWN = 0, 1, 2
SLOTS = tuple(f"0000:{0x01 + 4 * number:02x}:00.0" for number in range(8))
NOBODY = 65534


async def scanned(npus: Npus) -> tuple[int, dict[str, Any]]:
    """What a health check program gets: exit status, and the answer in JSON."""
    status, out = await npus.daemon.command("scan", "--socket", npus.daemon.socket)
    return status, json.loads(out)


# --- a library that cannot be loaded -----------------------------------------------------------------------


def take_away(npus: Npus) -> str:
    npus.library = npus.library.with_name("libnowhere.so")
    return f"{npus.library}: there is no such library"


def build_for_another_machine(npus: Npus) -> str:
    code = bytearray(npus.library.read_bytes())
    code[18:20] = (0x15).to_bytes(2, "little")
    npus.library = npus.library.with_name("foreign.so")
    npus.library.write_bytes(code)
    return f"{npus.library} is built for machine 0x15, this machine is {os.uname().machine}"


def forbid_to_read(npus: Npus) -> str:
    """Also to root, who is without the capability to read what is forbidden, as under systemd."""
    npus.library.chmod(0)
    if os.geteuid() == 0:
        os.chown(npus.library, NOBODY, NOBODY)
        npus.daemon.within = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
    return f"{npus.library}: Permission denied"


@pytest.mark.parametrize("spoil", [take_away, build_for_another_machine, forbid_to_read])
async def test_story_12_each_slot_is_lost_once_while_the_library_cannot_be_loaded(
    tmp_path: Path, spoil: Callable[[Npus], str]
) -> None:
    async with eight_npus(tmp_path) as npus:
        spared = npus.library.with_name("spared")
        shutil.copyfile(npus.library, spared)
        reason = f"PCI lists 8 NPUs, but {spoil(npus)}"
        await npus.start()
        lost = await npus.emitted(EventKind.SOURCE_LOST, "")
        tries = await npus.of_source("restarts_total")
        await npus.daemon.comes(lambda: tried_again(npus, tries + 2), "further tries")
        status, answer = await scanned(npus)
        assert (lost.device, lost.why) == ("node", reason)
        assert npus.course(DEVICE_LOST) == [f"{slot} raised" for slot in SLOTS]
        assert (status, sorted(each["name"] for each in answer["faulty"])) == (FAULTY, [*SLOTS])
        assert answer["reasons"] == [f"ascend: {reason}"]
        assert len(npus.subscriber.of(EventKind.SOURCE_LOST)) == 1

        spared.replace(npus.library)
        await npus.observed()
        for chip in CHIPS:
            await npus.cleared(chip, DEVICE_LOST)
        assert (await scanned(npus))[0] == GOOD
        assert {*await npus.devices()} == {"node", *CHIPS}
        assert without_gap(npus.events)


async def tried_again(npus: Npus, tries: float) -> bool:
    return await npus.of_source("restarts_total") >= tries


# --- a library that does not start -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (-8002, "operation not permitted (OPER_NOT_PERMITTED, -8002)"),
        (-8010, "sending a message to the device failed (SEND_MSG_FAIL, -8010)"),
    ],
)
async def test_story_13_a_driver_that_refuses_to_start_is_one_lost_source_and_isolates_nothing(
    tmp_path: Path, answer: int, reason: str
) -> None:
    async with eight_npus(tmp_path) as npus:
        npus.node.answer(answer, None, "dcmi_init")
        await npus.start()
        lost = await npus.emitted(EventKind.SOURCE_LOST, "")
        await npus.daemon.comes(lambda: tried_again(npus, 2), "further tries")
        status, form = await scanned(npus)
        assert lost.why.startswith(f"dcmi_init: {reason}")
        assert (status, form["result"], form["reasons"]) == (
            UNKNOWN,
            "unknown",
            [f"ascend: {lost.why}"],
        )
        assert {event.verdict for event in npus.events} == {Verdict.UNKNOWN}
        assert len(npus.subscriber.of(EventKind.SOURCE_LOST)) == 1

        npus.node.release()
        await npus.observed()
        assert (await scanned(npus))[0] == GOOD
        assert without_gap(npus.events)


async def test_a_node_is_not_called_good_before_its_chips_were_read(tmp_path: Path) -> None:
    async with eight_npus(tmp_path) as npus:
        npus.node.hang(None, "dcmi_init")
        await npus.start()
        unread = ["ascend: not read since the start"]
        await npus.daemon.comes(lambda: is_unknown(npus, unread), "what was not read, and nothing else")

        npus.node.release()
        await npus.observed()
        assert (await scanned(npus))[0] == GOOD


async def is_unknown(npus: Npus, reasons: list[str]) -> bool:
    status, form = await scanned(npus)
    assert status == UNKNOWN
    return bool(form["reasons"] == reasons)


# --- fewer chips than PCI lists ----------------------------------------------------------------------------


async def test_story_12_no_chip_where_pci_lists_eight_is_eight_lost_slots(tmp_path: Path) -> None:
    async with eight_npus(tmp_path) as npus:
        for chip in CHIPS:
            npus.node.take_out(chip)
        await npus.start()
        for slot in SLOTS:
            await npus.raised(slot, DEVICE_LOST)
        polls = await npus.of_source("polls_total")
        await npus.daemon.comes(lambda: polled(npus, polls + 10), "further polls")
        status, form = await scanned(npus)
        assert npus.course(DEVICE_LOST) == [f"{slot} raised" for slot in SLOTS]
        assert (status, sorted(each["name"] for each in form["faulty"])) == (FAULTY, [*SLOTS])


async def polled(npus: Npus, times: float) -> bool:
    return await npus.of_source("polls_total") >= times


async def test_story_12_the_chip_that_the_driver_removes_is_lost_once_and_by_its_slot(
    tmp_path: Path,
) -> None:
    async with eight_npus(tmp_path) as npus:
        await npus.start()
        await npus.observed()
        npus.node.take_out("npu3")
        lost = await npus.raised("npu3", DEVICE_LOST)
        await npus.polled("npu4", 10)
        (device,) = [device for name, device in (await npus.devices()).items() if name == "npu3"]
        status, form = await scanned(npus)
        assert lost.condition_level is Level.PRE_SEPARATE_NPU
        assert lost.evidence["reason"] == REMOVED
        assert (device.attributes["pci"], device.verdict) == ("0000:0d:00.0", Verdict.NO_NEW_JOBS)
        assert npus.course(DEVICE_LOST) == ["npu3 raised"]
        assert (status, [each["name"] for each in form["faulty"]]) == (FAULTY, ["npu3"])

        npus.node.return_("npu3")
        await npus.cleared("npu3", DEVICE_LOST)
        await npus.observed()
        assert npus.course(DEVICE_LOST) == ["npu3 raised", "npu3 cleared"]
        assert (await scanned(npus))[0] == GOOD
        assert without_gap(npus.events)
