"""What a request comes to: the devices that it names, as they are, and what the configuration allows.

All that is checked here is checked before anything is done, so that a request that may not be costs nothing.
"""

import importlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nodeagent.config.config import Config
from nodeagent.config.drivers import NvidiaConfig, VendorConfig
from nodeagent.config.reset import ResetConfig
from nodeagent.drivers.shared.resetting import Member, Order, ResetRefused
from nodeagent.reset_unit import allowed, group, inventory
from nodeagent.reset_unit.bug_report import BugReport
from nodeagent.reset_unit.exchange import record
from nodeagent.reset_unit.exchange.request import Device, Request
from nodeagent.reset_unit.inventory import Seen
from nodeagent.vendors import RESETS

FREE_LIMIT_S: Final = 2.0
LOOK_EACH_S: Final = 0.5
MAX_NAMED: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """``devices`` are those of ``members``, as the record has them. ``deadline_ns`` is on CLOCK_BOOTTIME."""

    vendor: str
    config: Config
    section: VendorConfig
    seen: Seen
    members: tuple[Member, ...]
    devices: tuple[Device, ...]
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

    def order(self, step: Callable[[str], None]) -> Order:
        """What the vendor's ``reset`` is given."""
        return Order(
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


def plan_of(request: Request, config_path: Path | None) -> Plan:
    """Raises ``ResetRefused``, and ``OSError`` where the machine cannot be read."""
    given = allowed.now(request.vendor, config_path, os.environ, once=request.once)
    config, section = given.config, given.section
    if request.ended_first and config.reset.terminate_holders == "never":
        raise ResetRefused('jobs are to be ended for it, and reset.terminate_holders is "never"')
    seen = _seen(request, section)
    attributes = {name: device.attributes for name, device in seen.devices.items()}
    vendor = importlib.import_module(RESETS[request.vendor].module)
    groups: Mapping[str, str] = vendor.groups(attributes)
    unlisted = vendor.unlisted(attributes)
    members = group.members(request.devices, seen.devices, groups, seen.missing, unlisted)
    if holders := _others_on(request, seen):
        raise ResetRefused(holders)
    latest_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) + config.reset.run_ns
    return Plan(
        vendor=request.vendor,
        config=config,
        section=section,
        seen=seen,
        members=members,
        devices=tuple(group.as_counted(member, seen.devices) for member in members),
        group=f"{request.vendor} {groups.get(members[0].name, unlisted)}",
        deadline_ns=min(request.deadline_ns, latest_ns),
    )


def _seen(request: Request, section: VendorConfig) -> Seen:
    """With who is on them. One that has just ended may still be listed, and is given a moment."""
    until_s = time.monotonic() + FREE_LIMIT_S
    boot_id, names = record.now().boot_id, [device.name for device in request.devices]
    while True:
        seen = inventory.look(request.vendor, section, boot_id, names)
        if not _others_on(request, seen) or time.monotonic() >= until_s:
            return seen
        time.sleep(LOOK_EACH_S)


def _others_on(request: Request, seen: Seen) -> str:
    """Who is on the devices and is not to be ended: a hook must not stop what they need. "" if nobody is.

    A device that does not say is no blocker here: that may be why it is reset, and its vendor's part asks
    again.
    """
    ended = {(process.pid, process.start_time) for process in request.ended_first}
    found = [
        f"{name} is held by {holder.command or 'a process'} (pid {holder.pid})"
        for name, holders in seen.holders.items()
        for holder in holders or ()
        if (holder.pid, holder.start_time) not in ended
    ]
    more = [f"{len(found) - MAX_NAMED} more"] if len(found) > MAX_NAMED else []
    return "; ".join([*found[:MAX_NAMED], *more])
