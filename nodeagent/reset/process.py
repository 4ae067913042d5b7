"""One attempt of one reset, in a process of its own that outlives the daemon: hooks, evidence, reset, result.

It does what the request says once, whatever becomes of the daemon, and says how it went by a file. It decides
nothing: whether a reset is in order was decided before, save that a person may have forbidden it since, or
the daemon called it off.
"""

import argparse
import importlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

from nodeagent.drivers import RESETS
from nodeagent.drivers.resetting import Member, Order, ResetFailed, ResetRefused, ResetTimedOut
from nodeagent.reset import command, ending, evidence
from nodeagent.reset.config import RUN_DIRECTORY, forbidden
from nodeagent.reset.folder import Folder, Locked, Request, Result, Step

LOCK_WAIT_S: Final = 2.0
MARGIN_S: Final = 40.0
"""So long before the deadline all must be over: the daemon has the devices read again before it tells."""

State = Literal["done", "failed", "timed_out", "refused"]


def main() -> None:
    """Exit status 0 once there is a result, or where there is nothing to do."""
    parser = argparse.ArgumentParser(prog="python -m nodeagent.reset", description=__doc__)
    parser.add_argument("name", help="of the request's file, without its ending")
    parser.add_argument("--folder", type=Path, default=Path(RUN_DIRECTORY), help="where the request lies")
    given = parser.parse_args()
    folder = Folder(given.folder)
    try:
        with folder.locked(given.name, LOCK_WAIT_S):
            request = folder.begin(given.name)
            if request is None:
                print(f"{given.name}: nothing is asked, or it was begun before")
                return
            stuck = _carry_out(folder, given.name, request)
            if stuck:
                # The call that has not come back would be waited for; the locks last until it has.
                os._exit(0)
    except Locked:
        print(f"{given.name}: another process is doing it")


def _carry_out(folder: Folder, name: str, request: Request) -> bool:
    """Whether a call of the vendor's is still under way when all else is over."""
    attempt = Attempt(request, name, folder)
    try:
        with folder.group_locked(request.group, LOCK_WAIT_S):
            attempt.run()
            folder.answer(name, attempt.result())
            return attempt.is_stuck
    except Locked:
        attempt.end("failed", "an earlier reset of the same devices has not ended")
    folder.answer(name, attempt.result())
    return False


class Attempt:
    """``run`` raises nothing that a hook, the machine or a vendor could cause: it is all in ``result``."""

    def __init__(self, request: Request, name: str, folder: Folder) -> None:
        self._request = request
        self._name = name
        self._folder = folder
        self._begun_s = time.monotonic()
        self._steps: list[Step] = []
        self._state: State = "failed"
        self._reason = ""
        self.is_stuck = False

    def end(self, state: State, reason: str) -> None:
        self._state, self._reason = state, reason

    def step(self, what: str) -> None:
        after_s = time.monotonic() - self._begun_s
        self._steps.append(Step(what=what, after_s=round(after_s, 3)))
        print(f"{after_s:8.3f} {what}", flush=True)

    def result(self) -> Result:
        request = self._request
        return Result(
            action=request.action,
            attempt=request.attempt,
            state=self._state,
            reason=self._reason,
            steps=tuple(self._steps),
        )

    def run(self) -> None:
        try:
            self._try()
        except command.CommandFailed as error:
            self.end("refused", f"hook before it: {error}")
        except Exception as error:  # noqa: BLE001 # the rim: what the hooks before it stopped must start again
            self.end("failed", f"{type(error).__name__}: {error}")
        self._restore()
        self.step("end")

    def _try(self) -> None:
        """Raises ``CommandFailed`` where a hook before it fails."""
        self._prepare()
        for missing in evidence.collect(self._request, self._name):
            self.step(missing)
        if self._devices_are_free():
            self._reset()

    def _prepare(self) -> None:
        for hook in self._request.before:
            self.step(f"before: {hook[0]}")
            command.run(hook, self._request.hook_timeout_s, self._environment())
        self.step("evidence")

    def _devices_are_free(self) -> bool:
        """Ends the jobs that may be ended; what does not end keeps its device, and nothing is reset."""
        request = self._request
        if request.ended_first and (why := self._why_not()):
            self.end("refused", why)
            return False
        stay = ending.end(request.ended_first, request.grace_s, Path(request.procfs), self.step)
        if stay:
            named = ", ".join(f"{process.command} ({process.pid})" for process in stay)
            self.end("failed", f"{named} did not end by SIGKILL either")
        return not stay

    def _restore(self) -> None:
        """What a hook before it stopped, one after it starts: each of them is run, whatever came of it."""
        outcome = {"NODEAGENT_RESULT": self._state, "NODEAGENT_REASON": self._reason}
        for hook in self._request.after:
            self.step(f"after: {hook[0]}")
            try:
                command.run(hook, self._request.hook_timeout_s, {**self._environment(), **outcome})
            except command.CommandFailed as error:
                self.step(f"hook after it: {error}")

    def _reset(self) -> None:
        """In a thread, for a vendor's call may never return; in time for the hooks after it."""
        if why := self._why_not():
            self.end("refused", why)
            return
        if (left_s := self._left_s()) <= 0:
            self.end("refused", "what came before it has left no time for it")
            return
        outcome: list[tuple[State, str]] = []
        thread = threading.Thread(
            target=lambda: outcome.append(self._call_vendor()), name="reset", daemon=True
        )
        thread.start()
        thread.join(left_s)
        self.is_stuck = not outcome
        self.end(*(outcome[0] if outcome else ("timed_out", "a call of the vendor's has not come back")))

    def _why_not(self) -> str:
        """What has come since it was asked for, "" if nothing."""
        if why := forbidden(self._request.do_not_touch, self._request.kernel_command_line):
            return f"resets are forbidden: {why}"
        why = self._folder.called_off(self._name)
        return f"it was called off: {why}" if why else ""

    def _left_s(self) -> float:
        request = self._request
        left_ns = request.deadline_ns - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        return left_ns / 1e9 - len(request.after) * request.hook_timeout_s - MARGIN_S

    def _call_vendor(self) -> tuple[State, str]:
        try:
            _vendors_reset(self._request.vendor)(self._order())
        except ResetRefused as error:
            return "refused", str(error)
        except ResetFailed as error:
            return "failed", str(error)
        except ResetTimedOut as error:
            return "timed_out", str(error)
        except Exception as error:  # noqa: BLE001 # the rim: whatever went wrong is this attempt's result
            return "failed", f"{type(error).__name__}: {error}"
        return "done", "the devices have started again"

    def _order(self) -> Order:
        request = self._request
        return Order(
            members=tuple(
                Member(name=each.name, identity=each.identity, attributes=each.attributes)
                for each in request.devices
            ),
            start_limit_s=request.start_limit_s,
            step=self.step,
            library=request.library,
            procfs=request.procfs,
        )

    def _environment(self) -> dict[str, str]:
        devices = self._request.devices
        return {
            "NODEAGENT_ACTION": self._request.action,
            "NODEAGENT_VENDOR": self._request.vendor,
            "NODEAGENT_DEVICES": " ".join(device.name for device in devices),
            "NODEAGENT_PCI": " ".join(device.attributes.get("pci", "-") for device in devices),
        }


def _vendors_reset(vendor: str) -> Callable[[Order], None]:
    if vendor not in RESETS:
        raise ResetRefused(f"nobody knows how to reset a device of {vendor or 'no vendor'}")
    reset: Callable[[Order], None] = importlib.import_module(RESETS[vendor]).reset
    return reset
