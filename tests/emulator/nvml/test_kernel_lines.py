"""The lines of the kernel module that go with an Xid."""

from pathlib import Path

import pytest

from nodeagent.emulator.gpus import recovery_line, xid_line
from tests.conftest import WriteKernelLine
from tests.emulator.nvml.conftest import Opened


def test_an_xid_writes_its_line_where_it_is_told_to(h100: Opened, tmp_path: Path) -> None:
    log = tmp_path / "kernel.log"
    h100.gpus.raise_xid("gpu1", 79, kernel_log=log)
    h100.gpus.raise_xid(
        "gpu0", 13, process_id=4242, process_name="train", detail="Ch 00000008", kernel_log=log
    )
    h100.gpus.raise_xid("gpu0", 999, kernel_log=log)
    assert log.read_text().splitlines() == [
        "NVRM: Xid (PCI:0000:43:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        "NVRM: Xid (PCI:0000:1b:00): 13, pid=4242, name=train, Ch 00000008",
        "NVRM: Xid (PCI:0000:1b:00): 999, pid='<unknown>', name=<unknown>, Xid 999 occurred",
    ]


def test_a_recovery_action_tells_what_it_was_and_what_it_is(h100: Opened, tmp_path: Path) -> None:
    log = tmp_path / "kernel.log"
    h100.gpus.set_recovery_action("gpu0", 4, kernel_log=log)
    h100.gpus.set_recovery_action("gpu0", 1, kernel_log=log)
    changed = "NVRM: Xid (PCI:0000:1b:00): 154, GPU recovery action changed"
    assert log.read_text().splitlines() == [
        f"{changed} from 0x0 (None) to 0x4 (Drain and Reset)",
        f"{changed} from 0x4 (Drain and Reset) to 0x1 (GPU Reset Required)",
    ]


def test_lines_name_the_process_only_where_one_is_known() -> None:
    assert xid_line("0000:3b:00", 31, "MMU Fault", process_id=7, process_name="a").endswith(
        "31, pid=7, name=a, MMU Fault"
    )
    assert recovery_line("0000:3b:00", 1, 0).endswith("from 0x1 (GPU Reset Required) to 0x0 (None)")


@pytest.mark.root
def test_the_kernel_itself_takes_the_line(
    h100: Opened, tmp_path: Path, write_kernel_line: WriteKernelLine
) -> None:
    mark = f"nodeagent-emulator-{tmp_path.name}"
    with Path("/dev/kmsg").open("rb", buffering=0) as ring:
        ring.seek(0, 2)
        h100.gpus.raise_xid("gpu1", 74, detail=mark, kernel_log=Path("/dev/kmsg"))
        record = next(text for text in iter(lambda: ring.read(8192).decode(), "") if mark in text)
    head, _, text = record.partition(";")
    assert head.split(",")[0] == str(1 << 3 | 3)
    assert text == f"NVRM: Xid (PCI:0000:43:00): 74, pid='<unknown>', name=<unknown>, {mark}\n"
