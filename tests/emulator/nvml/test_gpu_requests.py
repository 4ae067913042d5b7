"""GPUs by the control socket: what a person types is what pynvml then reads."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pynvml
import pytest
from click.testing import CliRunner

from nodeagent.cli.local.emulator import command
from nodeagent.emulator.control.server import Server
from tests.emulator.nvml.conftest import Opened

Say = Callable[..., str]


@pytest.fixture
def say(h100: Opened) -> Iterator[Say]:
    """Gives a command of the command line to the emulator; returns what it prints."""
    server = Server(h100.node)

    def say(name: str, *words: str, fails: bool = False) -> str:
        done = CliRunner().invoke(command, [name, "--directory", str(h100.node.directory), *words])
        assert (done.exit_code != 0) is fails, done.output
        return done.output

    yield say
    server.close()


def wait_once(events: object) -> int:
    return int(pynvml.nvmlEventSetWait_v2(events, 0).eventData)


def test_an_xid_and_its_line(h100: Opened, say: Say, tmp_path: Path) -> None:
    events = pynvml.nvmlEventSetCreate()
    pynvml.nvmlDeviceRegisterEvents(h100.handles[1], pynvml.nvmlEventTypeXidCriticalError, events)
    log = tmp_path / "kernel.log"
    say("xid", "gpu1", "79", "--kernel-log", str(log))
    say("recovery-action", "gpu1", "1", "--kernel-log", str(log))
    assert [wait_once(events), wait_once(events)] == [79, 154]
    assert [line.split(",")[0] for line in log.read_text().splitlines()] == [
        "NVRM: Xid (PCI:0000:43:00): 79",
        "NVRM: Xid (PCI:0000:43:00): 154",
    ]


def test_the_line_of_an_nvswitch(say: Say, tmp_path: Path) -> None:
    log = tmp_path / "kernel.log"
    say("sxid", "3", "20034", str(log), "--fatal", "--link", "7", "--detail", "LTSSM Fault Up")
    say("sxid", "0", "12028", str(log))
    assert log.read_text().splitlines() == [
        "nvidia-nvswitch3: SXid (PCI:0000:e8:00.0): 20034, Fatal, Link 07 LTSSM Fault Up",
        "nvidia-nvswitch0: SXid (PCI:0000:e5:00.0): 12028, Non-fatal, Link 00 SXid 12028 occurred",
    ]
    assert "a switch from 0 to 3 is right, not 4" in say("sxid", "4", "12028", str(log), fails=True)


def test_a_line_that_cannot_be_written_changes_nothing(h100: Opened, say: Say, tmp_path: Path) -> None:
    refused = say("recovery-action", "gpu1", "1", "--kernel-log", str(tmp_path / "no" / "log"), fails=True)
    assert "No such file or directory" in refused
    assert h100.node.chip("gpu1").gpu_recovery_action == 0


def test_memory(h100: Opened, say: Say) -> None:
    say("count-ecc", "gpu0", "dram", "--corrected", "3", "--uncorrected", "1")
    say("remap", "gpu0", "--uncorrected", "1", "--pending", "--failed")
    assert pynvml.nvmlDeviceGetTotalEccErrors(h100.handle, 0, 0) == 3
    assert pynvml.nvmlDeviceGetRemappedRows(h100.handle) == (0, 1, 1, 1)


def test_links_and_fabric(h100: Opened, say: Say) -> None:
    say("nvlink", "gpu0", "7", "down")
    say("fabric", "gpu0", "2")
    assert pynvml.nvmlDeviceGetNvLinkState(h100.handle, 7) == 0
    assert h100.node.chip("gpu0").gpu_fabric_state == pynvml.NVML_GPU_FABRIC_STATE_IN_PROGRESS
    say("nvlink", "gpu0", "7", "up")
    assert pynvml.nvmlDeviceGetNvLinkState(h100.handle, 7) == 1


def test_partitions(h100: Opened, say: Say) -> None:
    say("partition", "gpu0", "4,3")
    assert pynvml.nvmlDeviceGetMigMode(h100.handle) == [1, 1]
    say("partition", "gpu0", "none")
    assert pynvml.nvmlDeviceGetMigMode(h100.handle) == [0, 0]
    assert "numbers such as 3,2,1 or none are right, not 'x'" in say("partition", "gpu0", "x", fails=True)


def test_driver_and_library(h100: Opened, say: Say) -> None:
    assert f"{os.getpid()}" in say("clients")
    say("driver", "unloaded")
    with pytest.raises(pynvml.NVMLError_DriverNotLoaded):
        pynvml.nvmlDeviceGetCount()
    say("library", "620.10")
    say("driver", "loaded", "--version", "620.10")
    pynvml.nvmlShutdown()
    with pytest.raises(pynvml.NVMLError_LibRmVersionMismatch):
        pynvml.nvmlInit()


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (("xid", "gpu9", "79"), "gpu9: the GPUs of this node are gpu0, gpu1"),
        (("nvlink", "gpu0", "18", "down"), "gpu0: it has the NVLinks 0 to 17, not 18"),
        (("recovery-action", "gpu0", "8"), "gpu0: a recovery action from 0 to 7 is right, not 8"),
        (("fabric", "gpu0", "4"), "gpu0: a state from 0 to 3 is right, not 4"),
        (("count-ecc", "gpu0", "l1", "--corrected", "1"), "gpu0: it does not count corrected errors of l1"),
    ],
)
def test_what_cannot_be_is_refused_with_what_would_be_right(
    say: Say, words: tuple[str, ...], refusal: str
) -> None:
    assert refusal in say(*words, fails=True)
