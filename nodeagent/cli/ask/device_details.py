"""Everything that is known of one device, as lines with labels: what it is, where, what is measured of it.

What is not known has no line. Nothing is judged or written; why it has its verdict is in ``why``.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from nodeagent.cli.ask.device_tables import DeviceNow
from nodeagent.cli.ask.measured import UNKNOWN, memory, pair, parts, worded
from nodeagent.messages import enums
from nodeagent.messages.pb import types_pb2

Show = Callable[[DeviceNow], str]

_HERTZ_TO_MHZ: Final = 1e-6


def _attributes(*keys: str) -> Show:
    """``serial 2102, slot 3``: those that the device has."""

    def show(now: DeviceNow) -> str:
        own = now.device.attributes
        return ", ".join(f"{key} {own[key]}" for key in keys if key in own)

    return show


def _readings(name: str, form: str, scale: float = 1.0) -> Show:
    return lambda now: worded(parts(now.readings, name), form, scale)


def _memory(now: DeviceNow) -> str:
    text = memory(now.values.memory_used_bytes, now.values.memory_total_bytes)
    return "" if text == UNKNOWN else text


def _power(now: DeviceNow) -> str:
    drawn = worded(parts(now.readings, "power_watts"), "{:.0f} W")
    limit = now.readings.get("power_limit_watts")
    return f"{drawn}, limit {limit:.0f} W" if drawn and limit else drawn


def _ecc(now: DeviceNow) -> str:
    counts = (
        (
            "corrected",
            parts(now.readings, "ecc_corrected_total") or parts(now.readings, "edac_corrected_total"),
        ),
        (
            "uncorrected",
            parts(now.readings, "ecc_uncorrected_total") or parts(now.readings, "edac_uncorrected_total"),
        ),
    )
    return "; ".join(f"{what}: {worded(values, '{:.0f}')}" for what, values in counts if values)


def _links(now: DeviceNow) -> str:
    """How many are up, and the names of those that are down."""
    total = pair(now.values.links_up, now.values.links_total)
    if total == UNKNOWN:
        return ""
    down = [part or "it" for part, is_up in parts(now.readings, "link_up").items() if not is_up]
    return f"{total} up" + (f", down: {', '.join(down)}" if down else "")


def _pcie(now: DeviceNow) -> str:
    has = now.readings
    if "pcie_generation" not in has or "pcie_width_lanes" not in has:
        return ""
    present, most = (
        f"generation {has.get('pcie_generation' + end, 0):.0f},"
        f" {has.get('pcie_width_lanes' + end, 0):.0f} lanes"
        for end in ("", "_max")
    )
    return present if present == most or "pcie_generation_max" not in has else f"{present} (can: {most})"


def _throttle(now: DeviceNow) -> str:
    """What slows the clock down; that it has nothing to do is no such reason."""
    return ", ".join(
        part for part, is_set in parts(now.readings, "throttle").items() if is_set and part != "idle"
    )


def _users(now: DeviceNow) -> str:
    if not now.device.HasField("holders"):
        return ""
    users = (
        f"{each.command} (pid {each.pid}{f', {each.job}' if each.job else ''})"
        for each in now.device.holders.holders
    )
    return ", ".join(users) or "none"


def _claims(now: DeviceNow) -> str:
    return ", ".join(f"{each.job} ({each.kind})" if each.kind else each.job for each in now.device.claims)


def _kind(now: DeviceNow) -> str:
    kind = str(enums.KIND_OF.get(now.device.kind, ""))
    return ", ".join(filter(None, (kind, now.device.vendor)))


_LINES: Final[Mapping[str, Show]] = {
    "kind": _kind,
    "part": _attributes("product", "model", "chip", "serial", "board", "label"),
    "place": _attributes("slot", "pci", "upstream", "location", "part_of", "chips"),
    "versions": _attributes("firmware", "driver", "library", "inforom", "gsp_firmware", "chip_version"),
    "reset with": _attributes("group", "no_reset"),
    "temperature": _readings("temperature_celsius", "{:.0f} C"),
    "power": _power,
    "use": _readings("utilization_ratio", "{:.0f}%", 100.0),
    "clock": _readings("frequency_hertz", "{:.0f} MHz", _HERTZ_TO_MHZ),
    "slowed by": _throttle,
    "memory": _memory,
    "ecc": _ecc,
    "links": _links,
    "pcie": _pcie,
    "users": _users,
    "claimed by": _claims,
    "id": lambda now: now.device.id,
}


def details(now: DeviceNow) -> Iterator[tuple[str, str]]:
    """Labels and texts. Of a device that is not observed no reading is shown."""
    seen = now if now.device.observed else now._replace(readings={})
    for label, show in _LINES.items():
        if text := show(seen):
            yield f"{label}:", text


def headline_of(device: types_pb2.Device) -> tuple[str, str, str]:
    """Name, verdict, and the rest of the first line."""
    verdict = str(enums.VERDICT_OF.get(device.verdict, UNKNOWN))
    handling = str(enums.HANDLING_OF.get(device.handling, UNKNOWN))
    seen = "" if device.observed else "; it is not observed"
    why = "" if device.verdict == types_pb2.VERDICT_ALLOW else f"; nodeagent why {device.name} explains it"
    return f"{device.name}:", f"{verdict},", f"handling {handling}{seen}{why}"
