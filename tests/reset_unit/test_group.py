"""Whether the devices that are asked for are those that are there, and one group: by what they say."""

from collections.abc import Mapping

import pytest

from nodeagent import wire
from nodeagent.core.model import Kind
from nodeagent.drivers.nvidia import reset as nvidia
from nodeagent.drivers.shared.resetting import ResetMember, ResetRefused
from nodeagent.reset_unit.exchange.requests import RequestedDevice
from nodeagent.reset_unit.plan import as_counted, members_of

PCI = {"gpu0": "0000:1b:00.0", "gpu1": "0000:3b:00.0"}
ALONE = {"gpu0": "gpu0", "gpu1": "gpu1"}


def seen(**silent: bool) -> dict[str, wire.Device]:
    """Two GPUs; of those that are silent only the name is known."""
    return {
        name: wire.Device(device=name, kind=Kind.CHIP, vendor="nvidia")
        if silent.get(name)
        else wire.Device(
            device=name, kind=Kind.CHIP, vendor="nvidia", identity=f"GPU-{name}", attributes={"pci": pci}
        )
        for name, pci in PCI.items()
    }


def asked(name: str, identity: str = "", pci: str = "") -> RequestedDevice:
    return RequestedDevice(name=name, identity=identity, pci=pci)


def test_what_a_device_says_of_itself_is_taken() -> None:
    (member,) = members_of([asked("gpu1")], seen(), ALONE)
    assert member == ResetMember(
        name="gpu1", identity="GPU-gpu1", attributes={"pci": PCI["gpu1"]}, pci=PCI["gpu1"]
    )


def test_of_one_that_says_nothing_the_request_tells_it_and_it_is_counted_by_its_place() -> None:
    there = seen(gpu1=True)
    (member,) = members_of([asked("gpu1", "GPU-x", "0000:99:00.0")], there, ALONE)
    assert (member.identity, member.pci, member.attributes) == ("GPU-x", "0000:99:00.0", {})
    assert as_counted(member, there) == RequestedDevice(name="gpu1")


NPU2 = "0000:09:00.0"
NPUS = {"npu0": "npus", "npu1": "npus"}


def npus() -> dict[str, wire.Device]:
    return {name: wire.Device(device=name, kind=Kind.CHIP, vendor="ascend") for name in NPUS}


def test_one_that_pci_has_and_the_library_lacks_is_of_the_group_of_all() -> None:
    wanted = [asked("npu2", "die2", NPU2), asked("npu0"), asked("npu1")]
    found = members_of(wanted, npus(), NPUS, missing={NPU2}, unlisted="npus")
    assert found[0] == ResetMember(name="npu2", identity="die2", pci=NPU2)
    assert as_counted(found[0], npus()) == RequestedDevice(name="npu2", pci=NPU2)


@pytest.mark.parametrize(
    ("pci", "unlisted", "why"),
    [
        (NPU2, "", "it has dropped, and cannot be reset by a new process; power-cycle"),
        ("0000:99:00.0", "npus", "the library does not list npu2$"),
        ("", "npus", "the library does not list npu2$"),
    ],
)
def test_one_that_the_library_lacks_is_refused_where_pci_lacks_it_too_or_it_cannot_be_reset(
    pci: str, unlisted: str, why: str
) -> None:
    wanted = [asked("npu2", "die2", pci), asked("npu0"), asked("npu1")]
    with pytest.raises(ResetRefused, match=why):
        members_of(wanted, npus(), NPUS, missing={NPU2}, unlisted=unlisted)


def test_one_that_the_library_lacks_and_nobody_asked_for_keeps_all_that_are_reset_with_it() -> None:
    with pytest.raises(
        ResetRefused, match=f"^PCI lists {NPU2}, and the library does not: what sits there is"
    ):
        members_of([asked("npu0"), asked("npu1")], npus(), NPUS, missing={NPU2}, unlisted="npus")


@pytest.mark.parametrize(
    ("wanted", "silent", "groups", "why"),
    [
        ([asked("gpu7")], {}, ALONE, "the library does not list gpu7"),
        ([asked("gpu0", "GPU-x")], {}, ALONE, "another part sits in the place of gpu0: GPU-gpu0, not GPU-x"),
        ([asked("gpu0", pci="0000:99:00.0")], {}, ALONE, "gpu0 sits at 0000:1b:00.0, not at 0000:99:00.0"),
        ([asked("gpu1", pci=PCI["gpu0"])], {"gpu1": True}, ALONE, "gpu0 sits at 0000:1b:00.0, not gpu1"),
        ([asked("gpu1", "GPU-gpu0")], {"gpu1": True}, ALONE, "gpu0 is GPU-gpu0, not gpu1"),
        (
            [asked("gpu0")],
            {},
            {"gpu0": "nvlink", "gpu1": "nvlink"},
            "gpu0, gpu1 are reset together; asked for was gpu0",
        ),
        (
            [asked("gpu0"), asked("gpu1")],
            {},
            ALONE,
            "gpu0 is reset alone; asked for was gpu0, gpu1",
        ),
        (
            [asked("gpu0"), asked("gpu0")],
            {},
            ALONE,
            "gpu0 is reset alone; asked for was gpu0, gpu0",
        ),
        (
            [asked("gpu1")],
            {"gpu1": True},
            {"gpu0": "gpu0", "gpu1": ""},
            "which devices are reset together with gpu1 is unknown",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    wanted: list[RequestedDevice], silent: Mapping[str, bool], groups: Mapping[str, str], why: str
) -> None:
    with pytest.raises(ResetRefused) as refused:
        members_of(wanted, seen(**silent), groups)
    assert str(refused.value) == why


# ---------------------------------------------------------------------- the groups of GPUs

A100 = {"product": "A100", "group": "nvlink"}
UNLINKED = {"product": "A100", "group": "gpu2"}
HOPPER = {"product": "H100", "group": "gpu3"}


@pytest.mark.parametrize(
    ("attributes", "groups"),
    [
        ({"gpu0": A100, "gpu1": A100}, {"gpu0": "nvlink", "gpu1": "nvlink"}),
        ({"gpu0": A100, "gpu2": UNLINKED}, {"gpu0": "nvlink", "gpu2": "nvlink"}),
        ({"gpu0": A100, "gpu3": HOPPER}, {"gpu0": "nvlink", "gpu3": "gpu3"}),
        ({"gpu0": A100, "gpu1": {}}, {"gpu0": "nvlink", "gpu1": "nvlink"}),
        ({"gpu3": HOPPER, "gpu1": {}}, {"gpu3": "gpu3", "gpu1": "gpu1"}),
        ({"gpu0": {}, "gpu1": {}}, {"gpu0": "", "gpu1": ""}),
    ],
)
def test_the_group_of_a_gpu_that_does_not_tell_it_is_that_of_its_like(
    attributes: dict[str, dict[str, str]], groups: dict[str, str]
) -> None:
    assert nvidia.groups(attributes) == groups
