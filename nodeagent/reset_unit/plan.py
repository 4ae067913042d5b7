"""What one reset would do: its devices, its group, and whether configuration and limits allow it.

Everything here is checked before anything is done, so a refused request has no effect.

The configuration is read for each reset, from files that only root can write. A file that others could have
written allows nothing. The devices must be those that are listed, and exactly those that are reset together.
What a device reports about itself counts; the request counts only if the device reports nothing. The limits
count the record of past resets.
"""

import importlib
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nodeagent.config.config import Config
from nodeagent.config.layers import Layers, drop_in_folder
from nodeagent.config.load import DEFAULT_PATH, ConfigError, Read, config_file, config_files, read_config
from nodeagent.config.reset import ResetConfig
from nodeagent.core.model import ResetMode
from nodeagent.drivers.shared.resetting import ResetMember, ResetOrder, ResetRefused
from nodeagent.reset_unit.devices import ListedDevices, list_devices
from nodeagent.reset_unit.evidence import BugReport
from nodeagent.reset_unit.exchange import record, requests
from nodeagent.reset_unit.exchange.files import Untrusted, check_trusted
from nodeagent.reset_unit.exchange.record import PastReset
from nodeagent.reset_unit.exchange.requests import RequestedDevice, ResetRequest
from nodeagent.toml.problem import Problems
from nodeagent.vendors import RESETS, NvidiaConfig, VendorConfig
from nodeagent.wire import Device


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """The configuration that allows it; ``section`` is the vendor's."""

    config: Config
    section: VendorConfig


def allowed_now(vendor: str, path: Path | None, environ: Mapping[str, str], *, once: bool) -> Allowed:
    """What is allowed now by the file at ``path``, else at ``$NODEAGENT_CONFIG``, else at the usual place.

    Its drop-ins count as it does. ``once``: an operator ordered this one reset, as the daemon reports. The
    mode, which is about what is done by itself, then allows it; what forbids resets does not. Raises
    ``ResetRefused`` where the vendor's devices are not to be reset.
    """
    read = _read(path, environ)
    config = read.config
    section = config.drivers.get(vendor)
    if vendor not in RESETS or not isinstance(section, VendorConfig):
        raise ResetRefused(f"nodeagent cannot reset a device of {vendor}")
    mode = config.reset.of_vendor(vendor)
    if mode not in (ResetMode.ASK, ResetMode.ON) and not once:
        file = _file_of_the_mode(vendor, read.layers) or config_file(path, environ) or DEFAULT_PATH
        raise ResetRefused(f"reset.mode is {mode} for {vendor} in {file}")
    if why := config.reset.forbidden():
        raise ResetRefused(f"resets are forbidden: {why}")
    return Allowed(config=config, section=section)


def _read(path: Path | None, environ: Mapping[str, str]) -> Read:
    """Raises ``ResetRefused``."""
    try:
        files = config_files(path, environ, Problems().add)  # read_config reports problems of the folder
        file = config_file(path, environ) or DEFAULT_PATH
        # A folder that others may write could hold another file in a moment.
        folder = drop_in_folder(file)
        for each in (*(files or [file]), *([folder] if os.path.lexists(folder) else [])):
            check_trusted(each)
        return read_config(path, environ)
    except Untrusted as error:
        raise ResetRefused(f"the configuration is not root's alone: {error}") from error
    except OSError as error:
        place = f"{error.filename}: {error.strerror}"
        raise ResetRefused(f"the configuration cannot be read: {place}") from error
    except ConfigError as error:
        raise ResetRefused(f"the configuration cannot be used: {error.problems[0]}") from error


def _file_of_the_mode(vendor: str, layers: Layers) -> str | None:
    return layers.file_of(("reset", "modes", vendor)) or layers.file_of(("reset", "mode"))


def members_of(
    asked: Sequence[requests.RequestedDevice],
    seen: Mapping[str, Device],
    groups: Mapping[str, str],
    missing: Collection[str] = (),
    unlisted: str = "",
) -> tuple[ResetMember, ...]:
    """The members in the order of the request. ``groups``: of each seen device the group, "" where it is not
    known. A device that the library does not list may be one of those that PCI has and the library lacks, by
    their addresses in ``missing``; ``unlisted`` is its group, "" where none can be reset. One of them that
    was not requested would be reset with that group, and its processes are unknown.

    Raises ``ResetRefused``.
    """
    found = tuple(_member_of(each, seen, missing, bool(unlisted)) for each in asked)
    groups = {**{each.name: unlisted for each in found}, **groups}
    group = groups.get(asked[0].name, "")
    if not group:
        raise ResetRefused(f"which devices are reset together with {asked[0].name} is unknown")
    together = sorted(name for name, of in groups.items() if of == group)
    if together != sorted(each.name for each in asked):
        named = ", ".join(each.name for each in asked)
        how = "is reset alone" if len(together) == 1 else "are reset together"
        raise ResetRefused(f"{', '.join(together)} {how}; asked for was {named}")
    unasked = sorted(set(missing) - {member.pci for member in found})
    if unasked and group == unlisted:
        raise ResetRefused(
            f"PCI lists {', '.join(unasked)}, and the library does not: what sits there is reset together "
            "with the others, but was not requested, and its processes are unknown; power-cycle the node"
        )
    return found


def as_counted(member: ResetMember, seen: Mapping[str, Device]) -> requests.RequestedDevice:
    """The device by what it reports: an id or an address that was never read would make it another one."""
    there = seen.get(member.name)
    if there is None:
        return requests.RequestedDevice(name=member.name, pci=member.pci)
    return requests.RequestedDevice(
        name=member.name, identity=there.identity, pci=there.attributes.get("pci", "")
    )


def _member_of(
    asked: requests.RequestedDevice,
    seen: Mapping[str, Device],
    missing: Collection[str],
    may_be_unlisted: bool,
) -> ResetMember:
    there = seen.get(asked.name)
    if there is None and asked.pci in missing and may_be_unlisted:
        return ResetMember(name=asked.name, identity=asked.identity, pci=asked.pci)
    if there is None and asked.pci in missing:
        raise ResetRefused(
            f"the library does not list {asked.name}, and PCI does: it has dropped, and cannot be reset by a "
            "new process; power-cycle the node"
        )
    if there is None:
        raise ResetRefused(f"the library does not list {asked.name}")
    if there.identity and asked.identity and there.identity != asked.identity:
        raise ResetRefused(
            f"another part sits in the place of {asked.name}: {there.identity}, not {asked.identity}"
        )
    pci = there.attributes.get("pci", "")
    if pci and asked.pci and pci != asked.pci:
        raise ResetRefused(f"{asked.name} sits at {pci}, not at {asked.pci}")
    for other in seen.values():
        if other is not there and asked.pci and asked.pci == other.attributes.get("pci"):
            raise ResetRefused(f"{other.device} sits at {asked.pci}, not {asked.name}")
        if other is not there and asked.identity and asked.identity == other.identity:
            raise ResetRefused(f"{other.device} is {asked.identity}, not {asked.name}")
    return ResetMember(
        name=asked.name,
        identity=there.identity or asked.identity,
        attributes=there.attributes,
        pci=pci or asked.pci,
    )


FREE_LIMIT_S: Final = 2.0
LOOK_EACH_S: Final = 0.5
MAX_NAMED: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetPlan:
    """``devices`` are those of ``members``, as the record has them. ``deadline_ns`` is on CLOCK_BOOTTIME."""

    vendor: str
    config: Config
    section: VendorConfig
    seen: ListedDevices
    members: tuple[ResetMember, ...]
    devices: tuple[RequestedDevice, ...]
    group: str
    deadline_ns: int

    @property
    def reset(self) -> ResetConfig:
        return self.config.reset

    @property
    def hook_timeout_s(self) -> float:
        return self.reset.hook_timeout_ns / 1e9

    @property
    def procfs(self) -> Path:
        return Path(self.section.procfs)

    @property
    def driver_root(self) -> str:
        return self.section.driver_root if isinstance(self.section, NvidiaConfig) else ""

    @property
    def evidence(self) -> Path:
        return self.config.record_dir / "evidence"

    def bug_report(self, name: str) -> BugReport:
        """The report about the attempt of that name."""
        limit_s = self.reset.bug_report_timeout_ns / 1e9
        return BugReport(self.vendor, self.evidence / name, limit_s, self.driver_root)

    def order(self, step: Callable[[str], None]) -> ResetOrder:
        """What the vendor's ``reset`` is given."""
        return ResetOrder(
            members=self.members,
            start_limit_s=self.reset.verify_timeout_ns / 1e9,
            step=step,
            library=self.section.library,
            driver_root=self.driver_root,
            sysfs=self.section.sysfs,
            procfs=self.section.procfs,
        )

    def environment(self, action: str) -> dict[str, str]:
        """The environment of the hooks."""
        return {
            "NODEAGENT_ACTION": action,
            "NODEAGENT_VENDOR": self.vendor,
            "NODEAGENT_DEVICES": " ".join(member.name for member in self.members),
            "NODEAGENT_DRIVER_ROOT": self.driver_root,
            "NODEAGENT_PCI": " ".join(member.pci or "-" for member in self.members),
        }


def plan_of(request: ResetRequest, config_path: Path | None) -> ResetPlan:
    """Raises ``ResetRefused``, and ``OSError`` where the machine cannot be read."""
    given = allowed_now(request.vendor, config_path, os.environ, once=request.once)
    config, section = given.config, given.section
    if request.ended_first and config.reset.terminate_holders == "never":
        raise ResetRefused('jobs are to be ended for it, and reset.terminate_holders is "never"')
    seen = _seen(request, section)
    attributes = {name: device.attributes for name, device in seen.devices.items()}
    vendor = importlib.import_module(RESETS[request.vendor].module)
    groups: Mapping[str, str] = vendor.groups(attributes)
    unlisted = vendor.unlisted(attributes)
    members = members_of(request.devices, seen.devices, groups, seen.missing, unlisted)
    if users := _others_on(request, seen):
        raise ResetRefused(users)
    latest_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) + config.reset.run_ns
    return ResetPlan(
        vendor=request.vendor,
        config=config,
        section=section,
        seen=seen,
        members=members,
        devices=tuple(as_counted(member, seen.devices) for member in members),
        group=f"{request.vendor} {groups.get(members[0].name, unlisted)}",
        deadline_ns=min(request.deadline_ns, latest_ns),
    )


def _seen(request: ResetRequest, section: VendorConfig) -> ListedDevices:
    """The devices with their users. One that has just ended may still be listed, and is given a moment."""
    until_s = time.monotonic() + FREE_LIMIT_S
    boot_id, names = record.now().boot_id, [device.name for device in request.devices]
    while True:
        seen = list_devices(request.vendor, section, boot_id, names)
        if not _others_on(request, seen) or time.monotonic() >= until_s:
            return seen
        time.sleep(LOOK_EACH_S)


def _others_on(request: ResetRequest, seen: ListedDevices) -> str:
    """The processes on the devices that are not to be ended: a hook must not stop what they need. "" if none.

    A device without a list is no blocker here: that may be why it is reset, and its vendor's part asks
    again.
    """
    ended = {(process.pid, process.start_time) for process in request.ended_first}
    found = [
        f"{name} is used by {user.command or 'a process'} (pid {user.pid})"
        for name, users in seen.users.items()
        for user in users or ()
        if (user.pid, user.start_time) not in ended
    ]
    more = [f"{len(found) - MAX_NAMED} more"] if len(found) > MAX_NAMED else []
    return "; ".join([*found[:MAX_NAMED], *more])


def limit_exceeded(devices: Iterable[RequestedDevice], past: Sequence[PastReset], limits: ResetConfig) -> str:
    """What forbids one more reset of these now, "" if nothing."""
    counted = [each for each in past if each.ago_ns <= limits.limit_window_ns]
    hours = limits.limit_window_ns / 3.6e12
    for device in devices:
        times = sum(1 for each in counted if _had(each, device))
        if times >= limits.limit:
            return f"{device.name} had {_resets(times)} within {hours:g} h, by their record"
    if len(counted) >= limits.node_limit:
        return f"this node had {_resets(len(counted))} within {hours:g} h, by their record"
    last_ns = min((each.ago_ns for each in past), default=limits.cool_down_ns)
    if last_ns < limits.cool_down_ns:
        cool_down_s = limits.cool_down_ns / 1e9
        return f"the last reset was {last_ns / 1e9:.0f} s ago, and reset.cool_down is {cool_down_s:g} s"
    return ""


def _resets(number: int) -> str:
    return "1 reset" if number == 1 else f"{number} resets"


def _had(reset: PastReset, device: RequestedDevice) -> bool:
    """A reset of unknown devices may have been of any."""
    return not reset.devices or any(_is_same(each, device) for each in reset.devices)


def _is_same(one: RequestedDevice, other: RequestedDevice) -> bool:
    """Whether they are the same: by their ids where both were read, else by their places."""
    if one.identity and other.identity:
        return one.identity == other.identity
    return one.pci == other.pci if one.pci and other.pci else one.name == other.name
