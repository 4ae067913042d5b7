"""What the shipped tables make of the lines of Ascend's driver: which NPU they blame, and how gravely."""

import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.catalog.levels import PRECEDENCE
from nodeagent.core.engine import Engine
from nodeagent.core.model import (
    KERNEL_LOG,
    NODE,
    Event,
    EventKind,
    Handling,
    Level,
    Verdict,
)
from nodeagent.core.model.traits import EVENTS, NO_EVENTS
from nodeagent.drivers.kmsg.match import Match, Matcher
from nodeagent.wire import as_patterns
from tests.core.build import back, begin, device_view, of, open_codes, run, seen, signal
from tests.shipped import shipped_catalog

REPOSITORY = Path(__file__).parents[3]
DRIVER: dict[str, Any] = tomllib.loads((REPOSITORY / "tests/fixtures/ascend_driver.toml").read_text())
"""What the driver prints, each line with the place that prints it."""
TAKEN: list[list[str]] = DRIVER["printed"] + DRIVER["older"]
LEVELS = {
    "ASC_DEV_ABNORMAL": Level.RESTART_NPU,
    "ASC_DMA": Level.RESTART_NPU,
    "ASC_DMA.retried": Level.SUB_HEALTH,
    "ASC_GENERIC_ERR": Level.NOT_HANDLE,
    "ASC_HEARTBEAT": Level.RESTART_NPU,
    "ASC_HOST_MEMORY": Level.NOT_HANDLE,
    "ASC_HOTRESET": Level.PRE_SEPARATE_NPU,
    "ASC_MSG_FAIL": Level.SUB_HEALTH,
    "ASC_NOT_INIT": Level.SUB_HEALTH,
    "ASC_RESET_REFUSED": Level.NOT_HANDLE,
    "ASC_TS_EXC": Level.RESTART_NPU,
    "ASC_TS_TASK": Level.RESTART_BUSINESS,
    "ASC_UNNAMED": Level.SUB_HEALTH,
    "ASC_VM_FAULT": Level.RESTART_BUSINESS,
}
ABNORMAL = "Device is abnormal. (dev_id=5; msg_type=3)"
VM_FAULT = "[ascend] [ERROR] [devmm] [devmm_svm_device_fault 468] <kworker/u16:2:77,77> Vm fault failed."
TASK_FAILED = "[ascend] [ERROR] [tsdrv] [tsdrv_hb_cq_callback 332] <kworker/0:0:77> receive ts exception msg,"


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return shipped_catalog()


@pytest.fixture(scope="module")
def matcher(catalog: Catalog) -> Matcher:
    return Matcher(as_patterns(catalog.patterns))


def only(matcher: Matcher, text: str) -> Match:
    (found,) = matcher.match([text])
    assert found is not None, f"taken by nothing: {text}"
    return found


def judged(
    catalog: Catalog, matcher: Matcher, lines: Sequence[tuple[float, str]]
) -> tuple[Engine, list[Event]]:
    """The lines with their seconds, where the library reports no events, so that the kernel log decides."""
    engine = begin(catalog, chips=0)
    npus = [seen(f"npu{number}", f"die{number}") for number in range(8)]
    run(engine, [(0, replace(npu, attributes={EVENTS: NO_EVENTS})) for npu in npus])
    run(engine, [(0, back())])
    found = [(at_s, only(matcher, text)) for at_s, text in lines]
    signals = [
        (at_s, signal(match.code, "once", device=match.device, source=KERNEL_LOG)) for at_s, match in found
    ]
    return engine, run(engine, signals)


def test_a_message_of_the_driver_is_judged_as_listed(catalog: Catalog, matcher: Matcher) -> None:
    found = [(text, only(matcher, text), place) for text, *_, place in TAKEN]
    assert [[text, one.pattern, one.code, one.device, place] for text, one, place in found] == TAKEN
    levels = {code: row.level for code in {code for _, _, code, *_ in TAKEN} if (row := catalog.row(code))}
    assert levels == LEVELS


def test_a_message_that_says_nothing_of_the_npu_blames_none(matcher: Matcher) -> None:
    found = [(text, matcher.match([text])[0], why) for text, _, why in DRIVER["left"]]
    assert [[text, one.pattern if one else "", why] for text, one, why in found] == DRIVER["left"]
    assert {one.device for _, one, _ in found if one} <= {NODE}


@pytest.mark.parametrize(
    "named",
    [
        "dev_id=5",
        "devid=5",
        "devId=5",
        "udevid=5",
        "udev_id=5",
        "phys_id=5",
        "phy_id =5",
        "phyid=5",
        "phy_devid=5",
        "phy_dev_id=5",
        "dev_phy_id=5",
        "device_id=5",
        "device_id=[5]",
        "device id=5",
        "dev id=5",
        "device=5",
        "Device=5",
        "device:5",
        "dev_id: 5",
        "dev=5",
        "dev 5",
        "device 5",
        "device(5)",
        "dev_id(5)",
        "devid(5)",
        "device_id-5",
        "index_id=5",
        "bro_udevid=5",
        "ret=-22; dev_id=5",
        'msg_type="hdc"; dev_id=5',
    ],
)
def test_the_number_of_the_npu_is_read_by_each_of_its_names(matcher: Matcher, named: str) -> None:
    text = f"[ascend] [drv_pcie] [devdrv_msg 12] <kworker/1:1:22:22> Device is abnormal. ({named})"
    assert only(matcher, text).device == "npu5"


@pytest.mark.parametrize(
    "other",
    [
        "peer_dev_id=5",
        "dst_devid=5",
        "remote_udevid=5",
        "vdev_id=5",
        "mdev_id=5",
        "idev_id=5",
        "logic_devid=5",
        "dev_num=5",
        "dev_mask=5",
        "dev_id1=5",
        "dev_id=-1",
        "dev_id=4294967277",
        "dev_id=0x5",
        "chip_id=5",
        "msg_type=5",
    ],
)
def test_other_numbers_name_no_npu(matcher: Matcher, other: str) -> None:
    text = f"[ascend] [drv_pcie] [devdrv_msg 12] <kworker/1:1:22:22> Device is abnormal. ({other})"
    assert (only(matcher, text).device, only(matcher, text).code) == (NODE, "ASC_UNNAMED")


@pytest.mark.parametrize(
    "head",
    [
        "[ascend] [drv_pcie] [devdrv_msg_send 1239] <kworker/u385:0:152:152> ",
        "[ascend] [ERROR] [drv_pcie] [devdrv_msg_send 1239] <kworker/u385:0:152:152> ",
        "[ascend] [drv_pcie] [ERROR] [devdrv_msg_send 1239] <kworker/u385:0:152:152> ",
        "[ascend] [drv_pcie] [INFO] [devdrv_msg_send 1239] <kworker/u385:0:152:152> ",
        "[ascend] [drv_pcie] [WARN] [devdrv_msg_send 1239] <swapper/0:0> ",
        "[ascend] [drv_pcie] [NOTICE] [devdrv_msg_send 1239] <kworker/5:1H:39365,39365> ",
        "[ascend] [ERROR] [drv_pcie] [f 1] <kworker/1:1:22:22:7> ",
        "[ascend] [ERROR] [drv_pcie] [f 1] <a b>:1> c:22> ",
        "[ascend][ERROR][drv_pcie][devdrv_msg_send 1239]<kworker/1:1:22>",
        "[ascend] [drv_pcie] [devdrv_msg_send 1239]",
        "[ascend] [drv_pcie] [ERROR] ",
        "[ascend] [drv_pcie]    devdrv_msg_send     ",
    ],
)
def test_a_line_is_taken_in_each_form_that_the_driver_has_had(matcher: Matcher, head: str) -> None:
    found = only(matcher, f"{head}{ABNORMAL}")
    assert (found.code, found.device) == ("ASC_DEV_ABNORMAL", "npu5")


def test_the_name_of_a_program_is_no_number_of_an_npu(matcher: Matcher) -> None:
    text = '[ascend] [drv_pcie] [devdrv_msg 12] <dev_id=3:22:22> Device is abnormal. (msg_type="hdc")'
    assert only(matcher, text).device == NODE


def test_a_line_without_a_number_never_takes_the_node_out(catalog: Catalog, matcher: Matcher) -> None:
    unnamed = [text for text, _, _, device, _ in TAKEN if device == NODE]
    assert len(unnamed) > 20
    for text in unnamed:
        engine, _ = judged(catalog, matcher, [(1, text), (700, text), (1300, text), (1900, text)])
        node = device_view(engine, NODE)
        assert node.verdict is Verdict.ALLOW, text
        assert PRECEDENCE[node.level] <= PRECEDENCE[Level.SUB_HEALTH], text


def test_a_line_without_a_number_goes_with_the_npu_that_another_names(
    catalog: Catalog, matcher: Matcher
) -> None:
    head = "[ascend] [drv_pcie] [devdrv_rx_msg_task 1316] <kworker/7:1:77:77> Device is abnormal."
    lines = [f'{head} (msg_type="hdc")', f"{head} (dev_id=5; msg_type=3)", f'{head} (msg_type="hdc")']
    engine, _ = judged(catalog, matcher, [(float(at_s), text) for at_s, text in enumerate(lines, 1)])
    assert open_codes(engine) == [("die5", "ASC_DEV_ABNORMAL")]


def test_programs_that_use_bad_addresses_take_no_npu_out(catalog: Catalog, matcher: Matcher) -> None:
    lines = []
    for at_s, process in enumerate((4242, 4243, 4244, 4245)):
        lines.append((600.0 * at_s, f"{VM_FAULT} (hostpid={process}; devid=0; vfid=0; ret=64)"))
        lines.append(
            (600.0 * at_s + 2, f"{TASK_FAILED} call excep_code=0xb4060006, time=1.2s, devid=0 tsid=0")
        )
    engine, events = judged(catalog, matcher, lines)
    assert device_view(engine, "npu0").verdict is Verdict.ALLOW
    assert device_view(engine, "npu0").handling in (Handling.RESTART_JOB, Handling.RESCHEDULE)
    assert of(events, EventKind.PROMOTED) == []
    assert open_codes(engine) == [("die0", "ASC_VM_FAULT")]


def test_a_call_that_is_refused_during_a_reset_opens_nothing(catalog: Catalog, matcher: Matcher) -> None:
    refused = [text for text, _, code, *_ in TAKEN if code == "ASC_RESET_REFUSED"]
    assert len(refused) > 20
    engine, events = judged(catalog, matcher, [(float(at_s), text) for at_s, text in enumerate(refused)])
    assert open_codes(engine) == []
    assert {event.kind for event in events} <= {EventKind.NOTICE, EventKind.DEVICE_SEEN}
