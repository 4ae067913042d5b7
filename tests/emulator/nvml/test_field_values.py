"""Field values: one call, and for each id a value of the right type or a return code of its own."""

import ctypes
from typing import Any

import pynvml
import pytest

from tests.emulator.nvml.conftest import Opened, OpenNode
from tests.emulator.nvml_codes import code_of

NOT_SUPPORTED = pynvml.NVML_ERROR_NOT_SUPPORTED
INVALID = pynvml.NVML_ERROR_INVALID_ARGUMENT
ALL_LINKS = 0xFFFF_FFFF
MEMBERS = {
    pynvml.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal",
    pynvml.NVML_VALUE_TYPE_SIGNED_INT: "siVal",
}


def ask(handle: Any, *ids: int | tuple[int, int]) -> list[int | str]:
    """For each id, or id and scope, its value as its type says, or ``error N``."""
    answered = pynvml.nvmlDeviceGetFieldValues(handle, list(ids))
    return [
        f"error {value.nvmlReturn}"
        if value.nvmlReturn
        else int(getattr(value.value, MEMBERS[value.valueType]))
        for value in answered
    ]


def test_each_entry_has_a_return_code_of_its_own(h100: Opened) -> None:
    unknown, lacking, known = 9999, pynvml.NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS, pynvml.NVML_FI_DEV_ECC_CURRENT
    assert ask(h100.handle, unknown, lacking, known, 0) == [
        f"error {INVALID}",
        f"error {NOT_SUPPORTED}",
        1,
        f"error {INVALID}",
    ]


def test_a_call_for_no_field_or_without_room_is_refused(h100: Opened) -> None:
    call = h100.library.nvmlDeviceGetFieldValues
    room = (pynvml.c_nvmlFieldValue_t * 1)()
    assert call(h100.handle, ctypes.c_int32(0), ctypes.byref(room)) == INVALID
    assert call(h100.handle, ctypes.c_int32(1), None) == INVALID


def test_the_recovery_action_and_the_older_flags(h100: Opened) -> None:
    h100.gpus.set_recovery_action("gpu1", pynvml.NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET)
    h100.node.set("gpu1", "gpu_reset_status", 1)
    ids = (
        pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION,
        pynvml.NVML_FI_DEV_RESET_STATUS,
        pynvml.NVML_FI_DEV_DRAIN_AND_RESET_STATUS,
    )
    assert ask(h100.handles[1], *ids) == [4, 1, 0]
    assert ask(h100.handles[0], *ids) == [0, 0, 0]


def test_what_has_a_function_has_the_same_value_as_a_field(a100: Opened) -> None:
    a100.gpus.count_ecc("gpu0", "dram", corrected=2, uncorrected=1)
    a100.gpus.count_ecc("gpu0", "l2", corrected=4)
    a100.gpus.remap("gpu0", corrected=1, uncorrected=2, pending=True)
    a100.node.set("gpu0", "gpu_pcie_replays", 17)
    a100.node.set("gpu0", "gpu_energy_millijoules", 1 << 35)
    assert ask(
        a100.handle,
        pynvml.NVML_FI_DEV_ECC_SBE_VOL_TOTAL,
        pynvml.NVML_FI_DEV_ECC_SBE_VOL_DEV,
        pynvml.NVML_FI_DEV_ECC_SBE_AGG_L2,
        pynvml.NVML_FI_DEV_ECC_DBE_AGG_TOTAL,
        pynvml.NVML_FI_DEV_ECC_DBE_VOL_TEX,
    ) == [6, 2, 4, 1, f"error {NOT_SUPPORTED}"]
    remapped = range(pynvml.NVML_FI_DEV_REMAPPED_COR, pynvml.NVML_FI_DEV_REMAPPED_FAILURE + 1)
    assert ask(a100.handle, *remapped) == [1, 2, 1, 0]
    assert ask(
        a100.handle,
        pynvml.NVML_FI_DEV_PCIE_REPLAY_COUNTER,
        pynvml.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION,
        pynvml.NVML_FI_DEV_MEMORY_TEMP,
        pynvml.NVML_FI_DEV_POWER_INSTANT,
        pynvml.NVML_FI_DEV_RETIRED_DBE,
    ) == [17, 1 << 35, 41, 61_000, f"error {NOT_SUPPORTED}"]


def test_margins_are_signed(h100: Opened) -> None:
    limits = range(
        pynvml.NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT, pynvml.NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT + 1
    )
    assert ask(h100.handle, *limits) == [-8, -2, 0, 0]


def test_pcie_errors_stand_one_behind_the_other(h100: Opened) -> None:
    first, last = pynvml.NVML_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS, pynvml.NVML_FI_DEV_PCIE_COUNT_LANE_ERROR
    for place in range(11):
        h100.node.set("gpu0", "gpu_pcie_errors", 100 + place, place=place)
    assert ask(h100.handle, *range(first, last + 1)) == list(range(100, 111))


def test_links_by_lane_ids_by_scope_and_together(h100: Opened) -> None:
    for link in range(18):
        h100.node.set("gpu0", "gpu_nvlink_replays", link, place=link)
    assert ask(h100.handle, *range(46, 52)) == [0, 1, 2, 3, 4, 5]
    assert ask(h100.handle, *range(108, 114)) == [6, 7, 8, 9, 10, 11]
    assert ask(h100.handle, pynvml.NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL) == [sum(range(18))]
    replay = pynvml.NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY
    assert ask(h100.handle, (replay, 17), (replay, 18)) == [17, f"error {INVALID}"]
    h100.node.set("gpu0", "gpu_nvlink_sent_kibibytes", 64, place=2)
    sent = pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX
    assert ask(h100.handle, (sent, 2), (sent, 3), (sent, ALL_LINKS)) == [64, 0, 64]
    state, speed = pynvml.NVML_FI_DEV_NVLINK_GET_STATE, pynvml.NVML_FI_DEV_NVLINK_GET_SPEED
    version, count = pynvml.NVML_FI_DEV_NVLINK_GET_VERSION, pynvml.NVML_FI_DEV_NVLINK_LINK_COUNT
    assert ask(h100.handle, (state, 3), (speed, 3), (version, 3), count) == [1, 26562, 6, 18]


def test_corrected_blocks_are_sixteen_bins_for_each_link(b200: Opened) -> None:
    b200.node.set("gpu0", "gpu_nvlink5_corrected_blocks", 5, place=17 * 16 + 15)
    last = pynvml.NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_15
    assert ask(b200.handle, (last, 17), (last, 16), (last - 1, 17)) == [5, 0, 0]


@pytest.mark.parametrize("product", ["A100", "H100", "H200", "B200"])
def test_every_field_id_of_this_pynvml_is_answered(open_node: OpenNode, product: str) -> None:
    handle = open_node(f"1x{product}").handle
    for answered in ask(handle, *range(1, pynvml.NVML_FI_MAX)):
        assert answered == f"error {NOT_SUPPORTED}" or isinstance(answered, int)


def test_one_field_alone_can_be_told_what_to_answer(h100: Opened) -> None:
    action, mode = pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, pynvml.NVML_FI_DEV_ECC_CURRENT
    h100.node.answer(pynvml.NVML_ERROR_UNKNOWN, "gpu0", f"field:{action}")
    assert ask(h100.handles[0], action, mode) == ["error 999", 1]
    assert ask(h100.handles[1], action, mode) == [0, 1]


def test_the_call_itself_fails_for_a_lost_gpu(h100: Opened) -> None:
    h100.gpus.lose("gpu0")
    assert code_of(ask, h100.handle, 1) == pynvml.NVML_ERROR_GPU_IS_LOST
