"""What a run needs before its command is started: storage that answers, ports that are up, free memory.

It is asked for again and again until all is there, and the session decides how long that may take. Of the
chips only the daemon knows; where it cannot be asked, or knows no chip of the job yet, nothing is waited for.
Memory that is still in use after ``memory-wait`` keeps no run from beginning, as in NVIDIA's resiliency
extension (``_wait_for_gpu_memory_reclaim`` of its fault_tolerance/launcher.py): others may share the chip.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from nodeagent.job.model import SECOND_NS, Policy
from nodeagent.job.session.values import CalledOff, RunNotReady, SessionInput, Start
from nodeagent.job.shell.standard_error import print_message
from nodeagent.job.shell.tree import Tree

if TYPE_CHECKING:
    from nodeagent.job.lines import ChipReading, ChipReadings
    from nodeagent.job.shell.path_probe import PathProbe

ASK_EACH_NS: Final = 2 * SECOND_NS
"""As the extension does: fault_tolerance/config.py, gpu_memory_poll_interval."""

_GIB: Final = 1 << 30

FREE_SHARE: Final = 0.1
FREE_BYTES: Final = 4 * _GIB
"""So much may be in use, the greater of the two. The driver of an idle Ascend 910B has 2.8 to 3.4 GiB for
itself (npu-smi in vllm-project/vllm-ascend issues 4989, 10504, 12980); NVIDIA's extension allows 512 MB.
"""

REPORT_AFTER_S: Final = 6.0
"""The daemon reads the memory of a chip each 5 s: before that, it may be what the run before had."""


class RunChecks:
    """``ask`` asks the daemon for the chips by a number, and is false where it cannot be asked. A check has a
    negative number, a sample a positive one.
    """

    def __init__(self, tree: Tree, ask: Callable[[int, int], bool]) -> None:
        self._tree = tree
        self._ask = ask
        self._number = 0
        self._start: Start | None = None
        self._policy = Policy()
        self._probes: dict[str, PathProbe] = {}
        self._chips: tuple[ChipReading, ...] | None = None
        self._up: set[tuple[str, str]] = set()
        self._began_ns = 0
        self._due_ns: int | None = None
        self._reported = ""
        self._waits_for_memory = False
        self._found: list[SessionInput] = []

    def begin(self, start: Start, policy: Policy, now_ns: int) -> None:
        """The command is to be started."""
        self._start, self._policy = start, policy
        self._began_ns, self._reported, self._chips = now_ns, "", ()
        self._waits_for_memory = False
        self._look(now_ns)

    def call_off(self) -> bool:
        """The run is to end; whether it had not begun."""
        if self._start is None:
            return False
        self._found.append(CalledOff(run=self._start.run))
        self._end()
        return True

    def take_ready(self, now_ns: int) -> Start | None:
        """What may be started now: once."""
        start = self._start
        if start is None or self._is_waiting() or self._has_problem(start) or self._is_short(start, now_ns):
            return None
        self._end()
        return start

    def next_deadline_ns(self) -> int | None:
        dues = (self._due_ns, *(each.next_deadline_ns() for each in self._probes.values()))
        return min((each for each in dues if each is not None), default=None)

    def tick(self, now_ns: int) -> None:
        for each in self._probes.values():
            each.tick(now_ns)
        if self._due_ns is None or now_ns < self._due_ns:
            return
        if self._chips is None:  # no answer in time: nothing is known of the chips
            self._chips = ()
            self._due_ns = now_ns + ASK_EACH_NS
        else:
            self._look(now_ns)

    def answered(self, chips: ChipReadings) -> None:
        """Also those that were asked for by others: which ports were up is known by them."""
        self._up |= {(each.name, port) for each in chips.chips for port, is_up in each.ports.items() if is_up}
        if self._start is not None and chips.number == self._number:
            self._chips = chips.chips

    def ended(self, pid: int) -> None:
        for each in self._probes.values():
            each.ended(pid)

    def take(self) -> list[SessionInput]:
        """What was found since the last call."""
        found, self._found = self._found, []
        return found

    def _look(self, now_ns: int) -> None:
        self._due_ns = now_ns + ASK_EACH_NS
        self._ask_paths(now_ns)
        if self._policy.role.acts:
            self._number -= 1
            self._chips = None if self._ask(self._number, now_ns) else ()

    def _ask_paths(self, now_ns: int) -> None:
        for path in self._policy.need_paths:
            if path not in self._probes:
                from nodeagent.job.shell.path_probe import PathProbe

                self._probes[path] = PathProbe(path, self._policy.path_time_s, self._tree)
            try:
                self._probes[path].ask(now_ns)
            except OSError as error:
                self._probes[path].problem = f"{path} cannot be looked at: {error.strerror}"

    def _is_waiting(self) -> bool:
        """For an answer that is still in time. A path that did not answer before is not waited for again."""
        return self._chips is None or any(
            each.is_asked and each.problem is None for each in self._probes.values()
        )

    def _has_problem(self, start: Start) -> bool:
        paths = [each.problem for each in self._probes.values() if each.problem]
        ports = [problem for chip in self._chips or () for problem in self._ports_down(chip)]
        why = "; ".join([*paths, *ports])
        if why and why != self._reported:
            self._reported = why
            self._found.append(RunNotReady(run=start.run, why=why, is_of_chips=not paths))
        return bool(why)

    def _ports_down(self, chip: ChipReading) -> list[str]:
        """A link of the chip that never was up is not needed: it may have no cable."""
        own = [
            f"port {port} of {chip.name} is down"
            for port, is_up in chip.ports.items()
            if not is_up and (chip.name, port) in self._up
        ]
        return own + [f"{port}, a port of {chip.name}, is down" for port in chip.ports_down]

    def _is_short(self, start: Start, now_ns: int) -> bool:
        """Whether it is still waited for memory."""
        used = "; ".join(filter(None, (_memory_in_use(each) for each in self._chips or ())))
        if not used:
            return False
        waited_s = (now_ns - self._began_ns) / SECOND_NS
        if waited_s >= self._policy.memory_wait_s:
            print_message(f"run {start.run} begins with memory in use after {waited_s:.0f} s: {used}")
            return False
        if waited_s >= REPORT_AFTER_S and not self._waits_for_memory:
            self._waits_for_memory = True
            print_message(f"run {start.run} waits until memory is free: {used}")
        return True

    def _end(self) -> None:
        self._start = self._due_ns = None
        for each in self._probes.values():
            each.leave()
            each.problem = None


def _memory_in_use(chip: ChipReading) -> str:
    used, total = chip.memory_used_bytes, chip.memory_total_bytes
    if used is None or not total or used <= max(FREE_SHARE * total, FREE_BYTES):
        return ""
    users = ", ".join(str(each) for each in chip.holders or ())
    of = f" (process {users})" if users else ""
    return f"{chip.name} {used / _GIB:.1f} of {total / _GIB:.1f} GiB{of}"
