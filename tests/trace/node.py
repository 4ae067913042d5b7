"""The real daemon of a checkout under the recorder, with a kernel log of its own and emulated NPUs.

It uses only commands and the configuration, as users do, so that it can trace an older checkout too. Each
wait has a limit.
"""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.trace.interpreter import Checkout, make_traced
from tests.trace.recorder import RECORD_FILE, SPAN_FILE, Span

WAIT_LIMIT_S = 90.0
"""For anything that has to happen. Traced code is several times slower."""

LOOK_EVERY_S = 0.05
STOP_LIMIT_S = 20.0
DESCRIPTION = "8x910B"
OTHER_SOURCES = ("bmc", "host", "link", "nvidia", "previous_boot", "unifiedbus")

_CONFIGURATION = """
[agent]
state_dir = "{folder}/state"
socket = "{folder}/public.sock"
control_socket = "{folder}/control.sock"
tables = ["{root}/fault_codes"]

[metrics]
listen = ""

[drivers.kmsg]
path = "{folder}/kmsg"
poll_interval = "1h"
"""
_OFF = """
[drivers.{source}]
enabled = false
"""


class TraceFailed(Exception):
    """Something that the path needs did not happen; with what the processes printed."""


@dataclass
class Node:
    """Everything of it is in ``folder``. ``commands`` are the processes that it started and has to end."""

    checkout: Checkout
    folder: Path
    program: Path
    sections: str = ""
    kernel_lines: int = 0
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    # --- processes ---

    def start_emulator(self) -> None:
        """Eight Ascend 910B. It is a stand-in for hardware, so it is not traced."""
        directory = self.folder / "emulator"
        self._start("emulator", [self.checkout.program, "emulator", "start", DESCRIPTION, *self._emulator])
        self.until((directory / "control.sock").exists, "the emulator's control socket")

    def emulate(self, *arguments: str) -> None:
        """A request to the emulator, such as ``raise npu3 80E01801``."""
        self._run([self.checkout.program, "emulator", *arguments, *self._emulator])

    def start_daemon(self) -> None:
        """Start it with ``sections`` and wait until every device that it lists was read."""
        os.mkfifo(self.folder / "kmsg")
        configuration = _CONFIGURATION.format(folder=self.folder, root=self.checkout.root) + self.sections
        off = [each for each in (*OTHER_SOURCES, "ascend") if f"[drivers.{each}]" not in configuration]
        configuration += "".join(_OFF.format(source=each) for each in off)
        (self.folder / "nodeagent.toml").write_text(configuration)
        self.start("daemon", "run", "--no-stream", "--config", f"{self.folder}/nodeagent.toml")
        self.until(self._is_well, "the daemon with every device read")

    def start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        """A traced nodeagent that runs until the end; its output is in the file NAME.out."""
        return self._start(name, [self.program, *arguments])

    def command(self, *arguments: str) -> None:
        """A traced nodeagent command, to its end. Raises ``TraceFailed``."""
        self._run([self.program, *arguments])

    def output(self, name: str) -> str:
        return (self.folder / f"{name}.out").read_text(errors="replace")

    # --- the kernel log ---

    def write_kernel_line(self, message: str) -> None:
        """A record of the kernel itself, in the form of /dev/kmsg."""
        self.kernel_lines += 1
        with (self.folder / "kmsg").open("w") as log:
            log.write(f"3,{self.kernel_lines},{self.kernel_lines},-;{message}\n")

    # --- spans ---

    @contextlib.contextmanager
    def span(self, span: Span, length_s: float) -> Iterator[None]:
        """What is called in this span is recorded. It lasts at least ``length_s``."""
        begun_s = time.monotonic()
        self._set(span)
        try:
            yield
            time.sleep(max(0.0, begun_s + length_s - time.monotonic()))
        finally:
            self._set(Span.NONE)

    def _set(self, span: Span) -> None:
        # In place: the processes have mapped this file.
        with (self.folder / SPAN_FILE).open("r+b") as file:
            file.write(bytes([span]))

    def records(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in (self.folder / RECORD_FILE).read_text().splitlines()]

    # --- waits ---

    def until(self, found: Callable[[], object], what: str) -> None:
        """Raises ``TraceFailed`` when it does not come, or a process ends before it."""
        end_s = time.monotonic() + WAIT_LIMIT_S
        while not found():
            ended = [each for each in self.started if each.poll() is not None]
            if ended or time.monotonic() > end_s:
                why = f"{ended[0].args!r} ended" if ended else f"waited {WAIT_LIMIT_S:.0f} s"
                raise TraceFailed(f"no {what}: {why}\n{self._ends_of_outputs()}")
            time.sleep(LOOK_EVERY_S)

    def snapshot(self) -> dict[str, object]:
        """``nodeagent status``, by the program that is not traced; empty while the daemon does not answer."""
        command = [str(self.checkout.program), "status", "-o", "json"]
        command += ["--socket", f"{self.folder}/public.sock"]
        done = subprocess.run(command, capture_output=True, check=False, timeout=WAIT_LIMIT_S)
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            return {}
        return answer if isinstance(answer, dict) else {}

    def stop(self) -> None:
        """End what was started, the last first."""
        for process in reversed(self.started):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    # --- inside ---

    @property
    def _emulator(self) -> tuple[str, ...]:
        return ("--directory", str(self.folder / "emulator"))

    def _is_well(self) -> bool:
        devices = self.snapshot().get("devices")
        expected = DESCRIPTION.partition("x")[0] if "[drivers.ascend]" in self.sections else "0"
        if not isinstance(devices, list):
            return False
        chips = [each for each in devices if str(each.get("device", each.get("name"))).startswith("npu")]
        return len(chips) == int(expected) and all("UNKNOWN" not in json.dumps(each) for each in chips)

    def _start(self, name: str, command: Sequence[str | Path]) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.out").open("ab") as out:
            process = subprocess.Popen(
                [str(each) for each in command],
                cwd=self.folder,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        self.started.append(process)
        return process

    def _run(self, command: Sequence[str | Path]) -> None:
        words = [str(each) for each in command]
        try:
            subprocess.run(
                words,
                cwd=self.folder,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=True,
                text=True,
                timeout=WAIT_LIMIT_S,
            )
        except subprocess.TimeoutExpired as error:
            raise TraceFailed(f"{' '.join(words)}: no end within {WAIT_LIMIT_S:.0f} s") from error
        except subprocess.CalledProcessError as error:
            raise TraceFailed(f"{' '.join(words)}: status {error.returncode}\n{error.stderr}") from error

    def _environment(self) -> dict[str, str]:
        kept = {
            key: value for key, value in os.environ.items() if not key.startswith(("NODEAGENT_", "PYTHON"))
        }
        cache = self.folder / "cache"
        cache.mkdir(exist_ok=True)
        return {**kept, "CACHE_DIRECTORY": str(cache), "NODEAGENT_JOBS_SOCKET": f"{self.folder}/jobs.sock"}

    def _ends_of_outputs(self) -> str:
        return "\n".join(
            f"--- {path.name}\n{path.read_text(errors='replace')[-2000:]}"
            for path in self.folder.glob("*.out")
        )


@contextlib.contextmanager
def traced(checkout: Checkout) -> Iterator[Node]:
    """A node that is not started. Raises ``NotSetUp``."""
    with tempfile.TemporaryDirectory(prefix="nodeagent-trace-") as name:
        folder = Path(name)
        (folder / SPAN_FILE).write_bytes(bytes([Span.NONE]))
        (folder / RECORD_FILE).touch()
        node = Node(checkout, folder, make_traced(checkout, folder))
        try:
            yield node
        finally:
            node.stop()
