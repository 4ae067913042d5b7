"""Which GPUs there are, the ways to a handle, and what each GPU says it is."""

import ctypes
from pathlib import Path
from typing import Any

import pynvml
import pytest

from nodeagent.emulator.descriptions import DescriptionError
from nodeagent.emulator.node import EmulatedNode
from tests.emulator.nvml.conftest import Opened, OpenNode
from tests.emulator.nvml_codes import code_of


def test_every_way_to_a_handle_leads_to_the_same_gpu(h100: Opened) -> None:
    second = h100.handles[1]
    pci = pynvml.nvmlDeviceGetPciInfo(second).busId
    uuid = pynvml.nvmlDeviceGetUUID(second)
    binary = bytes.fromhex(uuid.removeprefix("GPU-").replace("-", ""))
    found = [
        pynvml.nvmlDeviceGetHandleByUUID(uuid),
        pynvml.nvmlDeviceGetHandleByUUIDV(uuid.encode(), pynvml.NVML_UUID_TYPE_ASCII),
        pynvml.nvmlDeviceGetHandleByUUIDV(binary, pynvml.NVML_UUID_TYPE_BINARY),
        pynvml.nvmlDeviceGetHandleByPciBusId(pci),
        pynvml.nvmlDeviceGetHandleByPciBusId("0000:43:00.0"),
        pynvml.nvmlDeviceGetHandleByPciBusId("43:00.0"),
        pynvml.nvmlDeviceGetHandleBySerial(pynvml.nvmlDeviceGetSerial(second)),
    ]
    assert [pynvml.nvmlDeviceGetIndex(handle) for handle in found] == [1] * 7


def test_what_no_gpu_is_called_by_is_not_found(h100: Opened) -> None:
    for call, name in (
        (pynvml.nvmlDeviceGetHandleByUUID, "GPU-00000000-0000-4000-a000-000000000000"),
        (pynvml.nvmlDeviceGetHandleByPciBusId, "0000:ff:00.0"),
        (pynvml.nvmlDeviceGetHandleBySerial, "none"),
    ):
        assert code_of(call, name) == pynvml.NVML_ERROR_NOT_FOUND
    assert code_of(pynvml.nvmlDeviceGetHandleByIndex, 2) == pynvml.NVML_ERROR_INVALID_ARGUMENT
    assert code_of(pynvml.nvmlDeviceGetHandleByPciBusId, "nonsense") == pynvml.NVML_ERROR_INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("product", "name", "device_id", "cores", "architecture", "capability", "links"),
    [
        ("A100", "NVIDIA A100-SXM4-80GB", 0x20B210DE, 6912, 7, (8, 0), 12),
        ("H100", "NVIDIA H100 80GB HBM3", 0x233010DE, 16896, 9, (9, 0), 18),
        ("H200", "NVIDIA H200", 0x233510DE, 16896, 9, (9, 0), 18),
        ("B200", "NVIDIA B200", 0x290110DE, 18944, 10, (10, 0), 18),
    ],
)
def test_a_product_says_what_it_is(
    open_node: OpenNode,
    product: str,
    name: str,
    device_id: int,
    cores: int,
    architecture: int,
    capability: tuple[int, int],
    links: int,
) -> None:
    handle = open_node(f"1x{product}").handle
    assert pynvml.nvmlDeviceGetName(handle) == name
    assert pynvml.nvmlDeviceGetPciInfo(handle).pciDeviceId == device_id
    assert pynvml.nvmlDeviceGetNumGpuCores(handle) == cores
    assert pynvml.nvmlDeviceGetArchitecture(handle) == architecture
    assert pynvml.nvmlDeviceGetCudaComputeCapability(handle) == capability
    assert pynvml.nvmlDeviceGetBrand(handle) == pynvml.NVML_BRAND_NVIDIA
    assert code_of(pynvml.nvmlDeviceGetNvLinkState, handle, links - 1) == 0
    assert code_of(pynvml.nvmlDeviceGetNvLinkState, handle, links) == pynvml.NVML_ERROR_INVALID_ARGUMENT


def test_eight_gpus_are_told_apart_by_everything_that_names_one(open_node: OpenNode) -> None:
    handles = open_node("8xH100").handles
    for call in (
        pynvml.nvmlDeviceGetUUID,
        pynvml.nvmlDeviceGetSerial,
        pynvml.nvmlDeviceGetMinorNumber,
        pynvml.nvmlDeviceGetBoardId,
        pynvml.nvmlDeviceGetModuleId,
        lambda handle: pynvml.nvmlDeviceGetPciInfo(handle).busId,
    ):
        assert len({call(handle) for handle in handles}) == 8
    assert pynvml.nvmlDeviceGetUUID(handles[0]).startswith("GPU-")
    assert len(pynvml.nvmlDeviceGetUUID(handles[0])) == 40
    assert not pynvml.nvmlDeviceOnSameBoard(handles[0], handles[1])
    assert pynvml.nvmlDeviceOnSameBoard(handles[0], handles[0])


def test_the_pci_address_is_told_in_all_its_forms(h100: Opened) -> None:
    pci = pynvml.nvmlDeviceGetPciInfo(h100.handles[1])
    assert (pci.domain, pci.bus, pci.device) == (0, 0x43, 0)
    assert (pci.busId, pci.busIdLegacy) == ("00000000:43:00.0", "0000:43:00.0")
    extended = pynvml.nvmlPciInfoExt_v1_t()
    extended.version = pynvml.nvmlPciInfoExt_v1
    pynvml.nvmlDeviceGetPciInfoExt(h100.handles[1], ctypes.byref(extended))
    assert (extended.bus, extended.baseClass, extended.subClass) == (0x43, 3, 2)
    assert extended.busId == "00000000:43:00.0"


def test_a_text_that_does_not_fit_is_not_told(h100: Opened) -> None:
    room = ctypes.create_string_buffer(40)
    call = h100.library.nvmlDeviceGetUUID
    assert call(h100.handle, room, ctypes.c_uint(40)) == pynvml.NVML_ERROR_INSUFFICIENT_SIZE
    assert room.raw == bytes(40)
    assert call(h100.handle, None, ctypes.c_uint(96)) == pynvml.NVML_ERROR_INVALID_ARGUMENT


def test_another_gpu_in_the_slot_has_another_uuid_and_serial(h100: Opened) -> None:
    before = pynvml.nvmlDeviceGetUUID(h100.handle), pynvml.nvmlDeviceGetSerial(h100.handle)
    h100.gpus.replace("gpu0", 77)
    after = pynvml.nvmlDeviceGetUUID(h100.handle), pynvml.nvmlDeviceGetSerial(h100.handle)
    assert set(before).isdisjoint(after)
    assert h100.gpus.uuid("gpu0") == after[0]


def test_board_firmware_and_image_are_told_as_texts(h100: Opened) -> None:
    assert pynvml.nvmlDeviceGetBoardPartNumber(h100.handle) == "692-2G520-0200-000"
    assert pynvml.nvmlDeviceGetVbiosVersion(h100.handle) == "96.00.A5.00.01"
    assert pynvml.nvmlDeviceGetInforomImageVersion(h100.handle) == "G520.0200.00.05"
    assert pynvml.nvmlGetExcludedDeviceCount() == 0


def test_an_inforom_is_sound_corrupt_or_not_there(h100: Opened) -> None:
    assert pynvml.nvmlDeviceValidateInforom(h100.handle) is None
    answers = {0: 0, 1: pynvml.NVML_ERROR_CORRUPTED_INFOROM, 0xFFFFFFFF: pynvml.NVML_ERROR_NOT_SUPPORTED}
    for held, answer in answers.items():
        h100.node.set("gpu0", "gpu_inforom_corrupt", held)
        assert h100.library.nvmlDeviceValidateInforom(h100.handle) == answer


def test_versions_are_those_of_the_driver_and_of_the_loaded_library(h100: Opened) -> None:
    assert pynvml.nvmlSystemGetDriverVersion() == "615.71"
    assert pynvml.nvmlSystemGetNVMLVersion() == "13.615.71"
    assert pynvml.nvmlSystemGetCudaDriverVersion() == 13000
    assert pynvml.nvmlDeviceGetGspFirmwareVersion(h100.handle) == b"615.71"
    assert pynvml.nvmlDeviceGetGspFirmwareMode(h100.handle) == [1, 1]


def test_what_a_product_has_no_firmware_of_is_not_supported(a100: Opened) -> None:
    call: Any = pynvml.nvmlDeviceGetGspFirmwareVersion
    assert code_of(call, a100.handle) == pynvml.NVML_ERROR_NOT_SUPPORTED


def test_one_node_has_npus_and_gpus(open_node: OpenNode) -> None:
    mixed = open_node("8x910B+8xH100")
    assert mixed.node.dcmi.exists()
    assert mixed.node.names() == [f"npu{n}" for n in range(8)] + [f"gpu{n}" for n in range(8)]
    assert pynvml.nvmlDeviceGetCount() == 8
    assert pynvml.nvmlDeviceGetUUID(mixed.handles[3]) == mixed.gpus.uuid("gpu3")


def test_a_node_has_room_for_eight(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match="9xH100: a node has room for at most 8 of this product"):
        EmulatedNode.create(tmp_path, "9xH100")
