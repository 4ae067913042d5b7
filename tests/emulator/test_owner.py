"""Whose the chips are, as the kernel driver has it: a mount namespace of its own takes all of them."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nodeagent.drivers.ascend.opening import PRIVILEGED
from nodeagent.emulator.node import EmulatedNode
from tests.waiting import Lines

pytestmark = pytest.mark.root

MakeNode = Callable[[str], EmulatedNode]

NOBODY = 65534
OPENS = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
status = library.dcmi_init()
count, cards = ctypes.c_int(), (ctypes.c_int * 64)()
listed = library.dcmi_get_card_list(ctypes.byref(count), cards, 64)
print(status, count.value if status == listed == 0 else 0, flush=True)
sys.stdin.read()
"""
OF_ITS_OWN = ("unshare", "--mount")
ORDINARY = (*OF_ITS_OWN, "setpriv", "--bounding-set=-sys_admin")
"""As root in a container that is not privileged."""


@contextmanager
def opening(node: EmulatedNode, *where: str) -> Iterator[str]:
    """What a process has opened that lives meanwhile: the answer, and the number of cards."""
    command = [*where, sys.executable, "-c", OPENS, str(node.dcmi)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Lines(process.stdout).readline().strip()
        finally:
            process.kill()


def test_the_first_container_takes_every_chip_and_the_second_sees_none(make_node: MakeNode) -> None:
    node = make_node("8x910B")
    with opening(node, *ORDINARY) as first, opening(node, *ORDINARY) as second:
        assert (first, second) == ("0 8", "-8020 0")


def test_a_container_that_has_ended_owns_nothing(make_node: MakeNode) -> None:
    node = make_node("8x910B")
    with opening(node, *ORDINARY):
        pass
    with opening(node, *ORDINARY) as second:
        assert second == "0 8"


def is_privileged() -> bool:
    """Whether this machine lets its root have every capability up to CAP_AUDIT_READ."""
    status = Path("/proc/self/status").read_text().split()
    return int(status[status.index("CapEff:") + 1], 16) & PRIVILEGED == PRIVILEGED


@pytest.mark.parametrize(
    "where",
    [
        (),
        ("setpriv", "--bounding-set=-all"),
        pytest.param(
            OF_ITS_OWN, marks=pytest.mark.skipif(not is_privileged(), reason="root lacks capabilities")
        ),
    ],
)
def test_who_is_taken_for_the_hosts_takes_nothing_from_containers(
    make_node: MakeNode, where: tuple[str, ...]
) -> None:
    """A process of the host, whatever it may do, and that of a privileged container."""
    node = make_node("8x910B")
    with opening(node, *where) as host, opening(node, *ORDINARY) as container, opening(node, *where) as late:
        assert (host, container, late) == ("0 8", "0 8", "0 8")


def device_nodes(folder: Path, owner: int) -> Path:
    """As the driver makes them: 0660."""
    folder.mkdir()
    for name in ("davinci_manager", *(f"davinci{number}" for number in range(8))):
        (folder / name).touch()
        (folder / name).chmod(0o660)
        os.chown(folder / name, owner, owner)
    return folder


@pytest.mark.parametrize(
    ("who", "answer"),
    [
        (("setpriv", "--bounding-set=-all"), "-8005"),
        (("setpriv", "--bounding-set=-all", f"--groups={NOBODY}"), "0"),
        ((), "0"),
    ],
    ids=["root-without-capabilities", "root-in-the-group", "root"],
)
def test_who_may_open_the_devices_is_said_by_their_owner_and_mode(
    make_node: MakeNode, tmp_path: Path, who: tuple[str, ...], answer: str
) -> None:
    node = make_node("8x910B")
    node.set_node("device_folder", str(device_nodes(tmp_path / "dev", NOBODY)))
    with opening(node, *who) as opened:
        assert opened.split()[0] == answer
