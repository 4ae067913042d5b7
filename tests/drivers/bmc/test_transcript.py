"""The double of the device file does what the kernel's does."""

from pathlib import Path

from nodeagent.emulator.node import EmulatedNode
from tests.drivers.bmc.conftest import DEVICE
from tests.drivers.bmc.transcript import transcript

OF_THE_KERNEL = Path(__file__).parents[2] / "fixtures/bmc/linux-6.1.txt"


def test_the_double_does_call_by_call_what_the_kernel_does(tmp_path: Path) -> None:
    with EmulatedNode.create(tmp_path / "node", "1xH100") as node:
        assert list(transcript(DEVICE, str(node.ipmi))) == OF_THE_KERNEL.read_text().splitlines()
