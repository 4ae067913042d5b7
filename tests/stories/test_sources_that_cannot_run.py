"""A source that is on the node and cannot run: nobody can say how the node is, and every interface says so.

Each row of the table makes one source unable to start, in a way that nodes know, on an empty store. None of
them is ``required``. The same daemon finds the source once it is mended.
"""

import json
import os
import socket
import stat
import subprocess
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from nodeagent.client import EventKind
from nodeagent.emulator.node import EmulatedNode
from tests.harness.daemon import COMMAND, Daemon, free_port
from tests.harness.kernel_log import FakeKernelLog
from tests.harness.subscriber import Subscriber
from tests.stories.answers import UNKNOWN, Answers, answers_of
from tests.waiting import WAIT_LIMIT_S

NOBODY = 65534
AS_UNDER_SYSTEMD = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
"""Root without the right to pass what permissions say."""

WELL = {
    **UNKNOWN,
    **dict.fromkeys(("status", "snapshot", "GetNode", "metrics"), "ALLOW"),
    "headline": "the node takes work; no chip is known",
    "scan": 0,
    "slurm": "well",
    "kubernetes": "True",
    "nvrx": [],
}
NOTHING = """
[drivers.ascend]
library = "{nowhere}/libdcmi.so"
sysfs = "{nowhere}"
[drivers.unifiedbus]
library = "{nowhere}/liblingqu-dcmi.so"
[drivers.nvidia]
library = "{nowhere}/libnvidia-ml.so.1"
sysfs = "{nowhere}"
[drivers.link]
sysfs = "{nowhere}"
[drivers.host]
sysfs = "{nowhere}"
root = "{nowhere}"
[drivers.bmc]
path = "{nowhere}"
[drivers.previous_boot]
path = "{nowhere}"
"""
DIES = "#include <stdlib.h>\n__attribute__((constructor)) static void begin(void) { abort(); }\n"


@dataclass(kw_only=True)
class Broken:
    """How a source was made unable to start. ``reason`` is in what is said of it; ``mend`` undoes it."""

    section: str
    reason: str
    mend: Callable[[], object]
    within: Sequence[str] = ()
    env: dict[str, str] = field(default_factory=dict)


def forbidden(path: Path) -> Callable[[], None]:
    """Nobody may read it but its owner, who is another one."""
    mode = stat.S_IMODE(path.stat().st_mode)
    os.chown(path, NOBODY, NOBODY)
    path.chmod(0)

    def mend() -> None:
        path.chmod(mode)
        os.chown(path, 0, 0)

    return mend


def ascend_library_refuses(folder: Path, node: EmulatedNode) -> Broken:
    node.answer(-8002, None, "dcmi_init")
    return Broken(
        section=f'[drivers.ascend]\nlibrary = "{node.dcmi}"\nsysfs = "{node.sysfs}"',
        reason="ascend: dcmi_init: operation not permitted",
        mend=node.release,
    )


def ascend_library_of_another_machine(folder: Path, node: EmulatedNode) -> Broken:
    code = bytearray(node.dcmi.read_bytes())
    code[18:20] = (0x15).to_bytes(2, "little")
    library = folder / "foreign.so"
    library.write_bytes(code)
    return Broken(
        section=f'[drivers.ascend]\nlibrary = "{library}"\nsysfs = "{folder}/no-sysfs"',
        reason=f"ascend: {library} is built for machine 0x15",
        mend=library.unlink,
    )


def ascend_library_ends_whoever_loads_it(folder: Path, node: EmulatedNode) -> Broken:
    library = folder / "deadly.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-xc", "-", "-o", library], input=DIES, text=True, check=True)
    return Broken(
        section=f'[drivers.ascend]\nlibrary = "{library}"\nsysfs = "{folder}/no-sysfs"',
        reason="ascend: worker ended by itself: killed by SIGABRT",
        mend=library.unlink,
    )


def ascend_has_no_socket(folder: Path, node: EmulatedNode) -> Broken:
    """Under systemd, whose socket for its workers is not there."""
    booted = 'mount -t tmpfs none /run/systemd && mkdir /run/systemd/system && exec "$@"'
    notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notified.bind(str(folder / "notify"))
    return Broken(
        section=f'[drivers.ascend]\nlibrary = "{node.dcmi}"\nsysfs = "{node.sysfs}"',
        reason="ascend: cannot start its worker: /run/nodeagent-ascend/socket: No such file or directory;",
        mend=notified.close,
        within=("unshare", "--mount", "sh", "-c", booted, "sh"),
        env={"INVOCATION_ID": "0" * 32, "NOTIFY_SOCKET": str(folder / "notify")},
    )


def unifiedbus_library_is_none(folder: Path, node: EmulatedNode) -> Broken:
    library = folder / "liblingqu-dcmi.so"
    library.write_text("no library")
    return Broken(
        section=f'[drivers.unifiedbus]\nlibrary = "{library}"',
        reason=f"unifiedbus: {library} is no shared library",
        mend=library.unlink,
    )


def nvidia_library_refuses(folder: Path, node: EmulatedNode) -> Broken:
    """NVML_ERROR_NO_PERMISSION (nvml.h), as where a control group denies the device files."""
    node.answer(4, None, "nvmlInitWithFlags")
    return Broken(
        section=f'[drivers.nvidia]\nlibrary = "{node.nvml}"\nsysfs = "{node.sysfs}"',
        reason="nvidia: NVML cannot be used: it answers NO_PERMISSION",
        mend=node.release,
    )


def link_may_not_be_read(folder: Path, node: EmulatedNode) -> Broken:
    net = folder / "sys/class/net"
    net.mkdir(parents=True)
    return Broken(
        section=f'[drivers.link]\nsysfs = "{folder}/sys"',
        reason="link: network interfaces cannot be listed: Permission denied",
        mend=forbidden(net),
        within=AS_UNDER_SYSTEMD,
    )


def host_may_not_be_read(folder: Path, node: EmulatedNode) -> Broken:
    memory = folder / "sys/devices/system/edac/mc"
    memory.mkdir(parents=True)
    return Broken(
        section=f'[drivers.host]\nsysfs = "{folder}/sys"\nroot = "{folder}/no-root"',
        reason="host: the node cannot be looked at: [Errno 13] Permission denied",
        mend=forbidden(memory),
        within=AS_UNDER_SYSTEMD,
    )


def bmc_may_not_be_opened(folder: Path, node: EmulatedNode) -> Broken:
    device = folder / "ipmi0"
    device.touch()
    forbidden(device)
    return Broken(
        section=f'[drivers.bmc]\npath = "{device}"',
        reason=f"bmc: cannot open {device}: Permission denied",
        mend=device.unlink,
        within=AS_UNDER_SYSTEMD,
    )


def kernel_log_may_not_be_read(folder: Path, node: EmulatedNode) -> Broken:
    log = folder / "kmsg"
    return Broken(
        section="[drivers.kmsg]\nrequired = false",
        reason=f"kmsg: cannot open {log}: Permission denied",
        mend=forbidden(log),
        within=AS_UNDER_SYSTEMD,
    )


def kernel_log_is_a_file(folder: Path, node: EmulatedNode) -> Broken:
    log = folder / "kmsg"
    log.unlink()
    log.touch()

    def mend() -> None:
        log.unlink()
        os.mkfifo(log)

    return Broken(
        section="[drivers.kmsg]\nrequired = false",
        reason=f"kmsg: {log} is neither a character device nor a FIFO",
        mend=mend,
    )


TABLE = (
    ("1x910B", ascend_library_refuses),
    ("1x910B", ascend_library_of_another_machine),
    ("1x910B", ascend_library_ends_whoever_loads_it),
    ("1x910B", ascend_has_no_socket),
    ("1x910B", unifiedbus_library_is_none),
    ("2xH100", nvidia_library_refuses),
    ("1x910B", link_may_not_be_read),
    ("1x910B", host_may_not_be_read),
    ("1x910B", bmc_may_not_be_opened),
    ("1x910B", kernel_log_may_not_be_read),
    ("1x910B", kernel_log_is_a_file),
)

WITH_A_STORE = (("1x910B", ascend_library_refuses), ("1x910B", kernel_log_is_a_file))
"""A library and a file that refuse. Which source it is does not matter to a store."""


def daemon_over(folder: Path, log: FakeKernelLog, broken: Broken) -> Daemon:
    kmsg = broken.section.partition("[drivers.kmsg]\n")[2]
    return Daemon(
        folder=folder,
        kernel_log=log.path,
        metrics=f"127.0.0.1:{free_port()}",
        kmsg=(kmsg,),
        sections=("" if kmsg else broken.section, "[nvrx]", f'socket = "{folder}/nvrx.sock"'),
        within=broken.within,
        env=broken.env,
    )


def scanned_alone(daemon: Daemon) -> tuple[int, list[str]]:
    """What ``scan`` says where no daemon answers."""
    ran = subprocess.run(
        [*daemon.within, *COMMAND, "scan", "--config", daemon.config, "-o", "json"],
        env={**daemon.environment(), **daemon.env},
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_LIMIT_S,
    )
    return ran.returncode, json.loads(ran.stdout)["reasons"]


@pytest.mark.root
@pytest.mark.parametrize(("description", "make"), TABLE, ids=[make.__name__ for _, make in TABLE])
async def test_every_interface_says_unknown_while_a_source_cannot_run(
    tmp_path: Path, description: str, make: Callable[[Path, EmulatedNode], Broken]
) -> None:
    with ExitStack() as left:
        node = left.enter_context(EmulatedNode.create(tmp_path / "node", description))
        log = FakeKernelLog(tmp_path)
        left.callback(log.close)
        broken = make(tmp_path, node)
        daemon = daemon_over(tmp_path, log, broken)
        daemon.configure()
        alone = scanned_alone(daemon)
        await daemon.spawn()
        subscriber = Subscriber(daemon)
        try:
            await daemon.comes((tmp_path / "nvrx.sock").exists, "its sockets")
            await daemon.comes(lambda: is_said(daemon, broken.reason), broken.reason)
            said = await answers_of(daemon, tmp_path / "nvrx.sock")
            await subscriber.begin_with_the_first_event()
            await subscriber.follow()
            await daemon.comes(lambda: bool(subscriber.of(EventKind.SOURCE_LOST)), "its loss")

            source = broken.reason.partition(":")[0]
            assert (alone[0], [reason.startswith(broken.reason) for reason in alone[1]]) == (2, [True])
            assert said.words == UNKNOWN
            assert [reason.startswith(broken.reason) for reason in said.reasons] == [True]
            assert said.up[source] is False
            (lost,) = subscriber.of(EventKind.SOURCE_LOST)
            assert (f"{lost.source}: {lost.why}", lost.verdict) == (said.reasons[0], "UNKNOWN")

            broken.mend()
            if broken.env:
                return
            await daemon.comes(lambda: is_well(daemon, tmp_path), "all well again")
        finally:
            await subscriber.leave()
            await daemon.kill()


@pytest.mark.root
@pytest.mark.parametrize(
    ("description", "make"), WITH_A_STORE, ids=[make.__name__ for _, make in WITH_A_STORE]
)
async def test_a_scan_beside_the_store_of_a_daemon_that_was_killed_reports_the_same(
    tmp_path: Path, description: str, make: Callable[[Path, EmulatedNode], Broken]
) -> None:
    with ExitStack() as left:
        node = left.enter_context(EmulatedNode.create(tmp_path / "node", description))
        log = FakeKernelLog(tmp_path)
        left.callback(log.close)
        broken = make(tmp_path, node)
        left.callback(broken.mend)
        daemon = daemon_over(tmp_path, log, broken)
        await daemon.spawn()
        try:
            await daemon.comes(daemon.socket.exists, "its socket")
            await daemon.comes(lambda: is_said(daemon, broken.reason), broken.reason)
        finally:
            await daemon.kill()
        status, reasons = scanned_alone(daemon)

    assert (status, [reason.startswith(broken.reason) for reason in reasons]) == (2, [True])


@pytest.mark.root
async def test_a_boot_of_the_past_that_cannot_be_read_is_told_and_changes_nothing(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    journal.mkdir()
    log = FakeKernelLog(tmp_path)
    daemon = Daemon(
        folder=tmp_path,
        kernel_log=log.path,
        sections=("[drivers.previous_boot]", f'path = "{journal}"'),
        within=AS_UNDER_SYSTEMD,
    )
    mend = forbidden(journal)
    try:
        await daemon.start()
        told = f"source previous_boot does not observe: {journal}: no journal: Permission denied"
        await daemon.comes(lambda: is_shown(daemon, told), told)
        status, said = await daemon.command("scan", "--socket", daemon.socket)
        assert ((await daemon.status())["node"]["verdict"], status, json.loads(said)["reasons"]) == (
            "ALLOW",
            0,
            [],
        )
    finally:
        await daemon.kill()
        mend()
        log.close()


async def test_what_is_not_on_the_node_makes_it_unknown_neither_at_a_start_nor_at_a_restart(
    tmp_path: Path,
) -> None:
    log = FakeKernelLog(tmp_path)
    daemon = Daemon(folder=tmp_path, kernel_log=log.path, sections=(NOTHING.format(nowhere=tmp_path / "no"),))
    subscriber = Subscriber(daemon)
    try:
        await daemon.start()
        await daemon.comes(lambda: is_good(daemon), "good")
        listed = [each["name"] for each in (await daemon.status())["sources"]]
        await daemon.restart()
        await subscriber.begin_with_the_first_event()
        await subscriber.follow()
        await daemon.comes(lambda: len(subscriber.of(EventKind.STARTED)) == 2, "the second start")
        assert await is_good(daemon)
    finally:
        await subscriber.leave()
        await daemon.kill()
        log.close()

    begun = [event.kind for event in subscriber.events].index(EventKind.STARTED, 1)
    assert listed == ["kmsg"]
    assert {event.verdict for event in subscriber.events[begun:]} == {"ALLOW"}
    assert subscriber.of(EventKind.SOURCE_LOST) == []


async def is_good(daemon: Daemon) -> bool:
    status, _ = await daemon.command("scan", "--socket", daemon.socket)
    return status == 0 and (await daemon.status())["node"]["verdict"] == "ALLOW"


async def is_shown(daemon: Daemon, told: str) -> bool:
    return told in await daemon.text("status", "--socket", daemon.socket)


async def is_said(daemon: Daemon, reason: str) -> bool:
    """Whether ``status`` says it of the node."""
    shown = await daemon.status()
    return any(each["text"].startswith(reason) for each in shown["devices"][0]["reasons"])


async def is_well(daemon: Daemon, folder: Path) -> bool:
    """Or its chips are listed, which it can say by now."""
    said: Answers = await answers_of(daemon, folder / "nvrx.sock")
    return said.words == WELL or (said.status, said.scan) == ("ALLOW", 0)
