"""NVLink in both generations of its counters, and the fabric behind the switches in all its structures."""

import ctypes
from typing import Any

import pynvml
import pytest

from nodeagent.emulator.layout import FieldError
from tests.emulator.nvml.conftest import Opened
from tests.emulator.nvml_codes import code_of

NOT_SUPPORTED = pynvml.NVML_ERROR_NOT_SUPPORTED
INVALID = pynvml.NVML_ERROR_INVALID_ARGUMENT


def fabric_of(opened: Opened, structure: Any, function: str = "nvmlDeviceGetGpuFabricInfoV") -> Any:
    """The fabric in one of its structures; an error as pynvml raises it."""
    answered = structure()
    getattr(pynvml, function)(opened.handle, ctypes.byref(answered))
    return answered


def test_links_are_active_until_one_goes_down(h100: Opened) -> None:
    h100.gpus.set_link("gpu0", 7, active=False)
    states = [pynvml.nvmlDeviceGetNvLinkState(h100.handle, link) for link in range(18)]
    assert states == [1] * 7 + [0] + [1] * 10
    assert pynvml.nvmlDeviceGetNvLinkState(h100.handles[1], 7) == 1
    h100.gpus.set_link("gpu0", 7, active=True)
    assert pynvml.nvmlDeviceGetNvLinkState(h100.handle, 7) == 1
    with pytest.raises(FieldError, match="gpu0: it has the NVLinks 0 to 17, not 18"):
        h100.gpus.set_link("gpu0", 18, active=False)


def test_links_beyond_those_of_the_product_are_refused_and_a_product_may_have_none(h100: Opened) -> None:
    assert code_of(pynvml.nvmlDeviceGetNvLinkState, h100.handle, 18) == INVALID
    assert code_of(pynvml.nvmlDeviceGetNvLinkState, h100.handle, 36) == INVALID
    h100.node.set("gpu0", "gpu_nvlink_count", 0xFFFFFFFF)
    assert code_of(pynvml.nvmlDeviceGetNvLinkState, h100.handle, 0) == NOT_SUPPORTED


def test_the_older_generations_count_errors_by_link_and_kind(h100: Opened) -> None:
    for counter, field in enumerate(
        (
            "gpu_nvlink_replays",
            "gpu_nvlink_recoveries",
            "gpu_nvlink_crc_flit_errors",
            "gpu_nvlink_crc_data_errors",
        )
    ):
        h100.node.set("gpu0", field, 10 + counter, place=17)
    answered = [pynvml.nvmlDeviceGetNvLinkErrorCounter(h100.handle, 17, counter) for counter in range(4)]
    assert answered == [10, 11, 12, 13]
    assert pynvml.nvmlDeviceGetNvLinkErrorCounter(h100.handle, 16, 0) == 0
    assert code_of(pynvml.nvmlDeviceGetNvLinkErrorCounter, h100.handle, 0, 4) == NOT_SUPPORTED
    assert code_of(pynvml.nvmlDeviceGetNvLinkErrorCounter, h100.handle, 0, 5) == INVALID


def test_the_fifth_generation_counts_by_field_ids_only(b200: Opened) -> None:
    assert pynvml.nvmlDeviceGetNvLinkVersion(b200.handle, 0) == pynvml.NVML_NVLINK_VERSION_5_0
    assert code_of(pynvml.nvmlDeviceGetNvLinkErrorCounter, b200.handle, 0, 0) == NOT_SUPPORTED
    b200.node.set("gpu0", "gpu_nvlink5_receive_errors", 9, place=4)
    asked = [(pynvml.NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS, 4), (pynvml.NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY, 4)]
    answered = pynvml.nvmlDeviceGetFieldValues(b200.handle, asked)
    assert [(value.nvmlReturn, value.value.ullVal) for value in answered] == [(0, 9), (NOT_SUPPORTED, 0)]


def test_what_is_at_the_other_end_of_a_link(a100: Opened) -> None:
    assert pynvml.nvmlDeviceGetNvLinkVersion(a100.handle, 0) == pynvml.NVML_NVLINK_VERSION_3_0
    kind = pynvml.nvmlDeviceGetNvLinkRemoteDeviceType(a100.handle, 0)
    assert kind == pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH
    ends = [pynvml.nvmlDeviceGetNvLinkRemotePciInfo(a100.handle, link).busId for link in range(12)]
    assert ends[0] == "00000000:E4:00.0"
    assert len(set(ends)) == 6
    capability = pynvml.NVML_NVLINK_CAP_P2P_SUPPORTED
    assert pynvml.nvmlDeviceGetNvLinkCapability(a100.handle, 0, capability) == 1


def test_link_encryption_is_told_in_both_revisions(h100: Opened) -> None:
    h100.node.set("gpu0", "gpu_nvlink_encryption", 1)
    for structure in (pynvml.c_nvmlNvLinkInfo_v1_t, pynvml.c_nvmlNvLinkInfo_v2_t):
        info = structure()
        pynvml.nvmlDeviceGetNvLinkInfo(h100.handle, ctypes.byref(info))
        assert info.isNvleEnabled == 1


def test_the_fabric_is_the_same_in_each_of_its_structures(b200: Opened) -> None:
    b200.node.set("gpu0", "gpu_fabric_clique", 3)
    b200.gpus.set_fabric("gpu0", pynvml.NVML_GPU_FABRIC_STATE_IN_PROGRESS, status=pynvml.NVML_ERROR_UNKNOWN)
    first = fabric_of(b200, pynvml.c_nvmlGpuFabricInfo_t, "nvmlDeviceGetGpuFabricInfo")
    second = fabric_of(b200, pynvml.c_nvmlGpuFabricInfo_v2_t)
    third = fabric_of(b200, pynvml.c_nvmlGpuFabricInfo_v3_t)
    fourth = fabric_of(b200, pynvml.c_nvmlGpuFabricInfo_v4_t, "nvmlDeviceGetGpuFabricInfo_v4")
    assert {(answered.state, answered.status) for answered in (first, second, third, fourth)} == {(2, 999)}
    assert first.cliqueId == second.cliqueId == third.cliqueId == 3
    assert (fourth.numCliques, fourth.cliques[0].id) == (1, 3)
    assert len({bytes(answered.clusterUuid) for answered in (first, second, third, fourth)}) == 1
    assert {answered.healthMask for answered in (second, third, fourth)} == {0x1AA}
    assert third.healthSummary == fourth.healthSummary == pynvml.NVML_GPU_FABRIC_HEALTH_SUMMARY_HEALTHY


def test_the_second_revision_is_not_written_beyond_its_end(b200: Opened) -> None:
    room = (pynvml.c_nvmlGpuFabricInfo_v2_t * 2)()
    room[0].version, room[1].version = pynvml.nvmlGpuFabricInfo_v2, 0xAAAA_AAAA
    pynvml.nvmlDeviceGetGpuFabricInfoV(b200.handle, ctypes.byref(room[0]))
    assert room[0].state == pynvml.NVML_GPU_FABRIC_STATE_COMPLETED
    assert room[1].version == 0xAAAA_AAAA


def test_a_product_before_hopper_has_no_fabric_to_tell_of(a100: Opened) -> None:
    third = pynvml.c_nvmlGpuFabricInfo_v3_t
    assert code_of(fabric_of, a100, third) == NOT_SUPPORTED
    first = pynvml.c_nvmlGpuFabricInfo_t
    assert code_of(fabric_of, a100, first, "nvmlDeviceGetGpuFabricInfo") == NOT_SUPPORTED


def test_chip_to_chip_links_are_there_once_the_state_says_so(h100: Opened) -> None:
    assert code_of(pynvml.nvmlDeviceGetC2cModeInfoV, h100.handle) == NOT_SUPPORTED
    h100.node.set("gpu0", "gpu_c2c_mode", 1)
    assert pynvml.nvmlDeviceGetC2cModeInfoV(h100.handle).isC2cEnabled == 1
