"""A tool that resets the GPUs of an emulated node, in place of nvidia-smi."""

from nodeagent.emulator.node import EmulatedNode

TOOL = """
from pathlib import Path
from nodeagent.emulator.node import EmulatedNode
node = EmulatedNode(Path({directory!r}))
if sys.argv[1] != "--gpu-reset":
    sys.exit(0)
with Path({directory!r}, "called").open("a") as called:
    print(*sys.argv[1:], file=called)
if holders := node.gpus.obstacles("gpu1"):
    print("GPU 00000000:00:00.0 is in use by another client:", *holders)
    sys.exit(255)
node.gpus.chip("gpu1").gpu_rows_pending = 0
print("GPU 00000000:00:00.0 was successfully reset.")
"""


def called(node: EmulatedNode) -> list[str]:
    """What the tool was asked to reset."""
    file = node.directory / "called"
    return file.read_text().splitlines() if file.exists() else []
