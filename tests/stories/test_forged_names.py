"""Names that say a fault, in lines that the kernel itself writes for any user: none is taken for a fault."""

import os
import platform
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodeagent.client import EventKind, Verdict
from tests.harness.configuration import ROOT
from tests.harness.kernel_log import RealKernelLog, of_the_kernel, reading
from tests.harness.subscriber import Subscriber
from tests.stories.conftest import Follow, LaunchGpus
from tests.stories.forging import FATAL_SIGNALS, NAME_CHARS, RATE, WAYS, Forger, as_nobody, kernel_setting
from tests.stories.gpus import GpuDaemon

SAMPLES: dict[str, Any] = tomllib.loads((ROOT / "tests/fixtures/kernel_samples.toml").read_text())
FAULTS = {
    text[:NAME_CHARS]: text for sort in ("of_the_field", "of_the_formats") for text, *_ in SAMPLES[sort]
}
"""By the name that a program would have to say it; more than these the ring might not hold."""
FIRST = "NVRM: Xid (PCI:0000:63:00): 119, Timeout after 6s of waiting for RPC response from GPU3 GSP!"
INTERFACES = ("bond0", "unrecoverable", "init_one", "mlx5_core", "Kernel-panic", "NVRM")
RESETS = {
    "as shipped": ('mode = "dry-run"',),
    "mode on": ('mode = "on"', "trust_process_list = true", 'announce = "5s"'),
}


@pytest.fixture
def written() -> Iterator[int]:
    """Reads what the kernel writes from now on."""
    with reading() as reader:
        os.lseek(reader, 0, os.SEEK_END)
        yield reader


@pytest.fixture
def all_logged(real_log: RealKernelLog) -> Iterator[RealKernelLog]:
    with kernel_setting(RATE, "0\n"):
        yield real_log


def count(lines: list[str], words: str) -> int:
    return sum(re.search(words, line) is not None for line in lines)


async def read_so_far(subscriber: Subscriber, log: RealKernelLog, code: str) -> int:
    """A line of user space is emitted behind all before it; how many events there are by then."""
    log.say("node", code)
    await subscriber.event(EventKind.NOTICE, code)
    return len(subscriber.events)


def on_the_real_log(launch_gpus: LaunchGpus, log: RealKernelLog, reset: str) -> GpuDaemon:
    daemon = launch_gpus("8xH100", reset=RESETS[reset])
    daemon.kernel_log = log.path
    daemon.tables.mkdir()
    (daemon.tables / "story.toml").write_text(log.table)
    return daemon


def forge_program_names(forger: Forger) -> Iterator[None]:
    """A program has a name of at most 15 bytes, and its file has one of 255. Yields after each name."""
    for name, fault in FAULTS.items():
        forger.run(name, "segfault", file=fault)
        yield
    for way in WAYS if platform.machine() == "x86_64" else ("segfault", "futex", "netlink"):
        for name in (FIRST[:NAME_CHARS], f"x\n{FIRST}"[:NAME_CHARS], "kernel BUG at x"):
            forger.run(name, way, file=f"x\n{FIRST}\n")
            yield
    with kernel_setting(FATAL_SIGNALS, "1\n"):
        forger.run("x", "segfault", file=FIRST)


def forge_mounts() -> None:
    as_nobody(
        f"mount -t tmpfs -o '{FIRST.split(',')[0]}' x /mnt",
        f"mount -t overlay -o 'lowerdir=/{FIRST.split(':')[0]}' x /mnt",
        namespaces="-Urm",
    )


def forge_interfaces() -> None:
    """Ports of a bridge, named and renamed, in a network of his own."""
    commands = ["ip link add Kernel-bug type bridge", "ip link set Kernel-bug up"]
    for name in INTERFACES:
        commands += (
            f"ip link add veth0 type veth peer name {name[:10]}-peer",
            f"ip link set veth0 name {name}",
            f"ip link set {name} master Kernel-bug",
            f"ip link set {name} up",
            f"ip link set {name}-peer up",
            f"ip link set {name} down",
            f"ip link del {name}",
        )
    as_nobody(*commands, namespaces="-Urn")


@pytest.mark.parametrize("reset", RESETS)
async def test_no_name_in_the_kernels_own_lines_is_taken_for_a_fault(
    launch_gpus: LaunchGpus,
    follow: Follow,
    written: int,
    all_logged: RealKernelLog,
    tmp_path: Path,
    reset: str,
) -> None:
    daemon = on_the_real_log(launch_gpus, all_logged, reset)
    subscriber = await follow(daemon)
    begun = await read_so_far(subscriber, all_logged, "LASTING_BEGUN")
    before = await daemon.status()
    of_the_kernel(written)
    (tmp_path / "programs").mkdir()
    forger = Forger(tmp_path / "programs")

    lines: list[str] = []
    # Read as they come: the ring may not hold them all until the end.
    for _ in forge_program_names(forger):
        lines += of_the_kernel(written)
    forge_mounts()
    lines += of_the_kernel(written)
    forge_interfaces()
    lines += of_the_kernel(written)
    ended = await read_so_far(subscriber, all_logged, "LASTING_ENDED")

    assert count(lines, r"segfault at ") >= len(FAULTS)
    assert count(lines, r"^NVRM: Xid \(PCI:\[\d+\]: segfault at 0 ") > 0
    assert (
        count(lines, r"^NVRM: Xid \(PCI:0000:63:00\): 119.*: potentially unexpected fatal signal 11\.$") == 1
    )
    assert count(lines, r"^tmpfs: Unknown parameter 'NVRM: Xid \(PCI:0000:63:00\): 119'$") == 1
    assert count(lines, r"^(bond0|Kernel-panic): (renamed from veth0|entered promiscuous mode)$") > 0
    if platform.machine() == "x86_64":
        assert count(lines, r"^traps: kernel BUG at x\[\d+\] (trap divide error|general protection)") == 2
    events = subscriber.events[begun:ended]
    assert {event.kind for event in events} == {EventKind.NOTICE}
    assert {event.verdict for event in events} == {Verdict.ALLOW}
    after = await daemon.status()
    assert after["conditions"] == before["conditions"]
    assert {each["name"]: each["verdict"] for each in after["devices"]} == {
        each["name"]: each["verdict"] for each in before["devices"]
    }
    assert after["actions"] == []


@pytest.mark.skipif(not Forger.can_use_up_memory(), reason="no memory and cpuset of cgroups' first version")
async def test_the_names_in_a_report_of_memory_used_up_are_no_other_fault(
    launch_gpus: LaunchGpus, follow: Follow, written: int, all_logged: RealKernelLog, tmp_path: Path
) -> None:
    """The group's name stands in it, that of the program at the beginning of two of its lines."""
    daemon = on_the_real_log(launch_gpus, all_logged, "mode on")
    subscriber = await follow(daemon)
    begun = await read_so_far(subscriber, all_logged, "LASTING_BEGUN")
    of_the_kernel(written)
    (tmp_path / "programs").mkdir()
    forger = Forger(tmp_path / "programs")

    lines: list[str] = []
    for name in (FIRST[:NAME_CHARS], "kernel BUG at x", "Internal error:"):
        forger.use_up_memory(name, FIRST)
        lines += of_the_kernel(written)
    ended = await read_so_far(subscriber, all_logged, "LASTING_ENDED")

    assert count(lines, r"^Internal error: invoked oom-killer: ") == 1
    assert count(lines, r"^oom-kill:.*,cpuset=NVRM: Xid \(PCI:0000:63:00\): 119, ") == 3
    events = subscriber.events[begun:ended]
    assert {event.code for event in events if event.kind is not EventKind.NOTICE} <= {"OOM_CGROUP"}
    assert {event.verdict for event in events} == {Verdict.ALLOW}
    assert (await daemon.status())["actions"] == []
