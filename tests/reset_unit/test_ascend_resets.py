"""How NPUs are reset: by which calls, in which order, and what is refused or failed."""

import io
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from nodeagent.drivers.ascend import reset as ascend
from nodeagent.drivers.shared.resetting import (
    ResetFailed,
    ResetMember,
    ResetOrder,
    ResetRefused,
    ResetTimedOut,
)
from nodeagent.emulator.node import EmulatedNode
from tests.reset_unit.conftest import Emulate
from tests.waiting import Lines, wait_until

GROUPS = {
    "8x910B": [f"npu{number}" for number in range(8)],
    "8x800IA2": ["npu3"],
    "16xA3": ["npu4", "npu5", "npu12", "npu13"],
    "16x9000A3": ["npu4", "npu5"],
    "4x300IDuo": ["npu2", "npu3"],
    "8x950": ["npu3"],
}
SERIES = {"16xA3": "A3", "16x9000A3": "A3"}
TRIES = 4
REFUSED = "dcmi_set_device_reset: reset failed (RESET_FAIL, -8015)"


@pytest.fixture(autouse=True)
def swift(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ascend, "POLL_EACH_S", 0.05)
    monkeypatch.setattr(ascend, "RESCAN_PAUSE_S", 0.1)
    monkeypatch.setattr(ascend, "FREE_LIMIT_S", 0.5)
    monkeypatch.setattr(ascend, "TRY_PAUSES_S", (0.01,) * (TRIES - 1))


def order(
    node: EmulatedNode, description: str, steps: list[str] | None = None, limit_s: float = 60
) -> ResetOrder:
    for name in node.names():
        node.set(name, "reset_ms", 200)
    return ResetOrder(
        members=tuple(
            ResetMember(name=name, identity="", attributes={"series": SERIES.get(description, "")})
            for name in GROUPS[description]
        ),
        start_limit_s=limit_s,
        step=(steps if steps is not None else []).append,
        library=str(node.dcmi),
    )


@pytest.mark.parametrize("description", GROUPS)
def test_one_call_resets_all_that_are_reset_together(emulate: Emulate, description: str) -> None:
    node = emulate(description)
    ascend.reset(order(node, description))
    assert [name for name in node.names() if node.chip(name).resets] == GROUPS[description]
    assert node.calls("dcmi_set_device_reset") + node.calls("dcmiv2_reset_device") == 1
    assert all(node.chip(name).ready for name in node.names())


def test_where_a_910b_refuses_it_has_failed(emulate: Emulate) -> None:
    node = emulate("8x910B")
    node.set("npu0", "reset_answer", -8015)
    with pytest.raises(ResetFailed, match=r"dcmi_set_device_reset: reset failed \(RESET_FAIL, -8015\)"):
        ascend.reset(order(node, "8x910B"))
    assert node.calls("dcmi_pre_reset_soc") == 0


def test_chips_that_do_not_start_are_named(emulate: Emulate) -> None:
    node = emulate("8x910B")
    node.set("npu5", "reset_ends", 0)
    with pytest.raises(ResetTimedOut) as late:
        ascend.reset(order(node, "8x910B", limit_s=0.5))
    assert str(late.value) == "not started within 0.5 s, by boot status: npu5 (2); 16 is started"


def test_an_a3_that_fails_in_band_is_reset_out_of_band(emulate: Emulate) -> None:
    node = emulate("16xA3")
    node.answer(-8015, "npu4", "dcmi_set_device_reset", times=TRIES)
    for name in GROUPS["16xA3"]:
        node.set(name, "outband_state", 1)
    steps: list[str] = []
    ascend.reset(order(node, "16xA3", steps))
    assert steps == [
        "reset in-band",
        *(f"{REFUSED}; once more in 0.01 s",) * (TRIES - 1),
        "in-band: dcmi_set_device_reset: reset failed (RESET_FAIL, -8015)",
        "prepare out of band",
        "reset out of band",
        "rescan",
        "wait for the chips to start",
    ]
    assert [name for name in node.names() if node.chip(name).resets] == GROUPS["16xA3"]


def test_an_a3_whose_channel_is_not_fit_has_failed(emulate: Emulate) -> None:
    node = emulate("16xA3")
    node.answer(-8015, "npu4", "dcmi_set_device_reset", times=TRIES)
    node.set("npu4", "outband_state", 0)
    with pytest.raises(ResetFailed, match=r"the out-of-band channel is not fit for a reset \(state 0\)"):
        ascend.reset(order(node, "16xA3"))
    assert not any(node.chip(name).resets for name in node.names())


def test_a_job_that_came_since_the_daemon_looked_is_named_and_keeps_its_chips(emulate: Emulate) -> None:
    node = emulate("8x910B")
    node.hold("npu5", os.getpid())
    with pytest.raises(ResetRefused, match=rf"^npu5 is used by \S+ \(pid {os.getpid()}\)$"):
        ascend.reset(order(node, "8x910B"))
    assert node.calls("dcmi_set_device_reset") == 0


def test_one_that_is_about_to_leave_is_waited_for(emulate: Emulate, monkeypatch: pytest.MonkeyPatch) -> None:
    node = emulate("8x910B")
    node.hold("npu5", os.getpid())
    monkeypatch.setattr(time, "sleep", lambda _: node.let_go("npu5"))
    ascend.reset(order(node, "8x910B"))
    assert node.calls("dcmi_set_device_reset") == 1


def test_a_process_that_ends_while_it_is_asked_for_does_not_stand_in_the_way(emulate: Emulate) -> None:
    node = emulate("8x910B")
    node.hold("npu5", os.getpid())
    node.end_process("npu5", os.getpid())
    ascend.reset(order(node, "8x910B"))
    assert node.calls("dcmi_set_device_reset") == 1


def test_where_nobody_can_tell_who_is_on_a_chip_nothing_is_reset(emulate: Emulate) -> None:
    node = emulate("8x910B")
    node.answer(-8005, "npu5", "dcmi_get_device_resource_info")
    with pytest.raises(ResetRefused, match="their processes cannot be read: dcmi_get_device_res"):
        ascend.reset(order(node, "8x910B"))
    assert node.calls("dcmi_set_device_reset") == 0


def test_cards_that_a_missing_die_has_mixed_up_are_not_reset(emulate: Emulate) -> None:
    """So does the vendor's library number them in a process that does not find npu1."""
    node = emulate("16xA3")
    node.take_out("npu1")
    for number in range(2, 16):
        card, device = divmod(number - 1, 2)
        node.set(f"npu{number}", "card_id", card)
        node.set(f"npu{number}", "device_id", device)
    with pytest.raises(ResetRefused, match="takes npu0, npu2 for one card, and they are of two"):
        ascend.reset(order(node, "16xA3"))
    assert not any(node.chip(name).resets for name in node.names())


def test_another_part_in_the_place_is_not_touched(emulate: Emulate) -> None:
    node = emulate("8x910B")
    member = ResetMember(name="npu0", identity="00000001-00000002-00000003-00000004-00000005")
    given = order(node, "8x910B")
    with pytest.raises(ResetRefused, match="another part sits in the place of npu0"):
        ascend.reset(ResetOrder(members=(member,), start_limit_s=1, step=given.step, library=given.library))
    assert node.calls("dcmi_set_device_reset") == 0


EXPORTER = """
import ctypes, sys
library, power = ctypes.CDLL(sys.argv[1]), ctypes.c_int()
while sys.stdin.read(1):
    library.dcmi_get_device_power_info(5, 0, ctypes.byref(power))
    print(flush=True)
"""


def test_a_reset_that_is_refused_while_an_exporter_calls_is_asked_for_again(
    emulate: Emulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = emulate("8x910B")
    steps: list[str] = []
    given = order(node, "8x910B", steps)
    node.hang("npu5", "dcmi_get_device_power_info")
    with subprocess.Popen(
        (sys.executable, "-c", EXPORTER, str(node.dcmi)), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as exporter:
        assert exporter.stdin is not None
        assert exporter.stdout is not None
        lines, pauses = Lines(io.TextIOWrapper(exporter.stdout)), itertools.count(1)
        exporter.stdin.write(b"." * 2)
        exporter.stdin.flush()
        wait_until(lambda: node.calls("dcmi_get_device_power_info", "npu5"), "the exporter's call")

        def until_it_has_called(_: float) -> None:
            """It calls again at once; the second call comes back as well."""
            if next(pauses) == TRIES - 1:
                node.release()
                lines.readline()
                lines.readline()

        monkeypatch.setattr(time, "sleep", until_it_has_called)
        ascend.reset(given)
        exporter.stdin.close()
    refused = "dcmi_set_device_reset: invalid parameter (INVALID_PARAMETER, -8001); once more in 0.01 s"
    assert steps[:TRIES] == ["reset in-band", *(refused,) * (TRIES - 1)]
    assert [node.chip(name).resets for name in node.names()] == [1] * 8


def test_a_reset_that_was_refused_when_it_had_begun_is_not_begun_anew(emulate: Emulate) -> None:
    node = emulate("8x910B")
    node.delay(200, "npu0", "dcmi_set_device_reset")
    node.answer(-8005, "npu0", "dcmi_set_device_reset")
    given = order(node, "8x910B")
    pause = threading.Event()

    def begin() -> None:
        while node.calls("dcmi_set_device_reset") == 0:
            pause.wait(0.005)
        node.drop("npu5")

    beginning = threading.Thread(target=begin)
    beginning.start()
    with pytest.raises(ResetFailed, match="INNER_ERR"):
        ascend.reset(given)
    beginning.join(10)
    assert node.calls("dcmi_set_device_reset") == 1


def test_a_job_that_comes_between_two_tries_keeps_its_chips(
    emulate: Emulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = emulate("8x910B")
    node.answer(-8005, "npu0", "dcmi_set_device_reset")
    monkeypatch.setattr(ascend, "FREE_LIMIT_S", 0.0)
    given = order(node, "8x910B")
    monkeypatch.setattr(time, "sleep", lambda _: node.hold("npu5", os.getpid()))
    with pytest.raises(ResetRefused, match=r"^npu5 is used by"):
        ascend.reset(given)
    assert node.calls("dcmi_set_device_reset") == 1


def test_a_300i_duo_is_reset_by_its_first_die_whichever_asked(emulate: Emulate) -> None:
    node = emulate("4x300IDuo")
    given = order(node, "4x300IDuo")
    ascend.reset(replace(given, members=tuple(reversed(given.members))))
    assert [name for name in node.names() if node.chip(name).resets] == ["npu2", "npu3"]


@pytest.mark.parametrize("dropped", ["npu2", "npu3"])
def test_the_die_of_a_300i_duo_that_works_is_not_reset_for_the_one_that_has_dropped(
    emulate: Emulate, dropped: str
) -> None:
    node = emulate("4x300IDuo")
    node.drop(dropped)
    given = order(node, "4x300IDuo")
    attributes = {"group": "card1", "series": "310"}
    members = tuple(replace(each, attributes=attributes) for each in given.members)
    with pytest.raises(ResetRefused, match=f"^the library does not list {dropped}$"):
        ascend.reset(replace(given, members=members))
    assert not any(node.chip(name).resets for name in node.names())


def test_a_910b_that_has_dropped_is_reset_by_the_others(emulate: Emulate) -> None:
    node = emulate("8x910B")
    node.drop("npu3")
    steps: list[str] = []
    given = order(node, "8x910B", steps)
    first = given.members[3]
    attributes = {"group": "npus", "series": "910B"}
    others = (replace(each, attributes=attributes) for each in given.members if each is not first)
    ascend.reset(replace(given, members=(first, *others)))
    assert steps[0] == "npu3 has dropped, and is not found: it is reset with the others"
    assert [(node.chip(name).resets, node.chip(name).ready) for name in node.names()] == [(1, 1)] * 8


def test_where_chips_are_one_group_for_want_of_knowledge_one_that_has_dropped_is_not_reset_by_others(
    emulate: Emulate,
) -> None:
    node = emulate("16xA3")
    node.drop("npu4")
    attributes = {"group": "npus", "series": "A3"}
    members = tuple(ResetMember(name=name, identity="", attributes=attributes) for name in node.names())
    with pytest.raises(ResetRefused, match=r"^the library does not list npu4, npu5$"):
        ascend.reset(replace(order(node, "16xA3"), members=members))
    assert not any(node.chip(name).resets for name in node.names())


def test_an_a3_that_has_dropped_cannot_be_reset_by_a_process_that_does_not_find_it(emulate: Emulate) -> None:
    node = emulate("16xA3")
    node.drop("npu4")
    given = order(node, "16xA3")
    attributes = {"group": "card2+card6", "series": "A3"}
    with pytest.raises(ResetRefused, match=r"^the library does not list npu4, npu5$"):
        ascend.reset(
            replace(given, members=tuple(replace(each, attributes=attributes) for each in given.members))
        )
    assert not any(node.chip(name).resets for name in node.names())


def test_whom_the_vendors_library_kills_is_told_before(
    emulate: Emulate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = emulate("16xA3")
    monkeypatch.setattr(ascend, "KILL_LIST", tmp_path / "custom_process.cfg")
    with subprocess.Popen(("sleep", "60")) as exporter:
        listed = f"AllowKilledWhenResetNPU : sleep : {exporter.pid}\n"
        for place in (ascend.KILL_LIST, node.directory / "custom_process.cfg"):
            place.write_text(listed)
        node.hold("npu0", exporter.pid)
        steps: list[str] = []
        ascend.reset(order(node, "16xA3", steps))
        assert exporter.wait(10) == -signal.SIGKILL
    assert steps[0] == (
        f"the vendor's library kills sleep (pid {exporter.pid}) on npu0: {ascend.KILL_LIST} lists it"
    )


def test_one_that_the_library_would_kill_keeps_its_chips_like_any_other(emulate: Emulate) -> None:
    node = emulate("16xA3")
    (node.directory / "custom_process.cfg").write_text(f"AllowKilledWhenResetNPU:python:{os.getpid()}\n")
    node.hold("npu5", os.getpid())
    with pytest.raises(ResetRefused, match=r"^npu5 is used by"):
        ascend.reset(order(node, "16xA3"))
    assert node.calls("dcmi_set_device_reset") == 0
