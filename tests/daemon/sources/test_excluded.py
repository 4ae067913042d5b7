"""Devices are marked as excluded where they are listed, by patterns of names or PCI addresses."""

from nodeagent import wire
from nodeagent.core.model import DeviceSeen, Kind
from nodeagent.daemon.sources.inventory import WHY
from nodeagent.daemon.sources.observation import Observation
from nodeagent.daemon.sources.translate import StampClock

CLOCK = StampClock(boottime_ns=lambda: 1_000, to_rule_ns=lambda stamp_ns: stamp_ns)


def device(name: str, pci: str) -> wire.Device:
    return wire.Device(device=name, kind=Kind.CHIP, vendor="nvidia", attributes={"pci": pci})


def test_a_device_is_excluded_by_its_name_or_its_address_and_others_are_not() -> None:
    observation = Observation("nvidia", False, CLOCK, exclude=("gpu[12]", "0000:07:*"))
    listed = [device(f"gpu{number}", f"0000:0{number}:00.0") for number in (0, 1, 2, 7)]
    inputs = observation.hello(wire.Hello(devices=tuple(listed)), ())
    seen = {given.device: given.attributes for given in inputs if isinstance(given, DeviceSeen)}
    assert {name for name, attributes in seen.items() if attributes.get("excluded") == WHY} == {
        "gpu1",
        "gpu2",
        "gpu7",
    }
    assert {name for name, attributes in seen.items() if "no_reset" in attributes} == {"gpu1", "gpu2", "gpu7"}
