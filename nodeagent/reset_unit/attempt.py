"""One attempt of a reset: checks, hooks, evidence, the reset itself, and its result.

    allowed by root's configuration ─> the devices are one group without users ─> within the limits
        ─> hooks before it ─> evidence ─> jobs ended ─> still allowed ─> counted ─> the vendor's reset
        ─> hooks after it ─> (after the result, if it failed) the report for the vendor's support

The daemon has decided that a reset is needed. This process decides whether it is allowed, and trusts no claim
of the request: an administrator may have forbidden resets since, or the daemon may have cancelled this one. A
reset is counted right before it is done, so two processes never exceed the limits.
"""

import importlib
import os
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Literal

from msgspec.structs import replace

from nodeagent.drivers.shared.resetting import ResetFailed, ResetOrder, ResetRefused, ResetTimedOut
from nodeagent.reset_unit import evidence
from nodeagent.reset_unit.devices import end_processes, list_devices, processes_to_end
from nodeagent.reset_unit.evidence import BugReport, CommandFailed, run_command
from nodeagent.reset_unit.exchange import files, record
from nodeagent.reset_unit.exchange.files import Locked
from nodeagent.reset_unit.exchange.record import ResetEntry, ResetRecord
from nodeagent.reset_unit.exchange.requests import (
    RequestFolder,
    ResetRequest,
    ResetResult,
    ResetStep,
    printable,
)
from nodeagent.reset_unit.plan import ResetPlan, allowed_now, limit_exceeded, plan_of
from nodeagent.vendors import RESETS

COUNT_WAIT_S: Final = 2.0


class ResetCount:
    """The count of one attempt.

    ``prepare`` and ``begin`` raise ``ResetRefused`` where it may not be done now.
    """

    def __init__(self, request: ResetRequest, plan: ResetPlan) -> None:
        self._request = request
        self._plan = plan
        self._entry: ResetEntry | None = None
        self.record = ResetRecord(plan.config.record_dir)

    def prepare(self) -> None:
        """See to it that it can be counted, and may be now."""
        try:
            self.record.make()
            files.check_trusted(self.record.folder)
            self._check(record.now())
        except (OSError, ValueError, files.Untrusted) as error:
            raise ResetRefused(f"the record of resets cannot be used: {error}") from error

    def begin(self) -> None:
        """Count it, as the last thing before it is done."""
        request = self._request
        try:
            with self.record.counting(COUNT_WAIT_S):
                begun = record.now()
                self._check(begun)
                self.record.forget_old(begun)
                self._entry = ResetEntry(
                    action=request.action,
                    attempt=request.attempt,
                    vendor=request.vendor,
                    devices=self._plan.devices,
                    begun=begun,
                )
                self.record.put(self._entry)
        except Locked as error:
            raise ResetRefused("another process keeps the record of resets locked") from error
        except (OSError, ValueError) as error:
            raise ResetRefused(f"it cannot be counted: {error}") from error

    def end(self, outcome: str) -> None:
        """From now on it counts; ``refused``: it does not count. Raises ``OSError`` and ``ValueError``."""
        if self._entry is not None and outcome == "refused":
            self.record.drop(self._entry)
        elif self._entry is not None:
            self.record.put(replace(self._entry, ended=record.now(), outcome=outcome))

    def _check(self, present: record.RecordedTime) -> None:
        past = record.resets_of_late(self.record.folder, present=present)
        if why := limit_exceeded(self._plan.devices, past, self._plan.reset):
            raise ResetRefused(why)


GROUP_WAIT_S: Final = 2.0
MARGIN_S: Final = 40.0
"""So long before the deadline all must be over: the daemon has the devices read again before it reports."""

AttemptState = Literal["done", "failed", "timed_out", "refused"]


class ResetAttempt:
    """``run`` raises nothing that a hook, the machine or a vendor could cause: it is all in ``result``."""

    def __init__(
        self,
        request: ResetRequest,
        name: str,
        folder: RequestFolder,
        config_path: Path | None,
        is_to_end: threading.Event | None = None,
    ) -> None:
        """Once ``is_to_end`` is set no reset begins."""
        self._is_to_end = is_to_end or threading.Event()
        self._request = request
        self._name = name
        self._folder = folder
        self._config_path = config_path
        self._begun_s = time.monotonic()
        self._steps: list[ResetStep] = []
        self._state: AttemptState = "failed"
        self._reason = ""
        self.is_stuck = False
        """Whether a call of the vendor's is still under way when all else is over."""
        self.bug_report: BugReport | None = None
        """It is to be made once the result is known to the daemon, for all that waits for it."""

    def result(self) -> ResetResult:
        return ResetResult(state=self._state, reason=self._reason, steps=tuple(self._steps))

    def run(self, locks: ExitStack) -> None:
        """``locks`` are to be held until the result is written, or a call that is stuck has come back."""
        try:
            self._step("look")
            plan = plan_of(self._request, self._config_path)
            count = ResetCount(self._request, plan)
            count.prepare()
            locks.enter_context(count.record.group_locked(plan.group, GROUP_WAIT_S))
        except ResetRefused as refused:
            self._end("refused", str(refused))
        except Locked:
            self._end("failed", "an earlier reset of the same devices has not ended")
        except Exception as error:  # noqa: BLE001 # the boundary: whatever went wrong is this attempt's result
            self._end("failed", f"{type(error).__name__}: {error}")
        else:
            self._with_hooks(plan, count)
        self._step("end")

    # ------------------------------------------------------------------ in order

    def _with_hooks(self, plan: ResetPlan, count: ResetCount) -> None:
        try:
            self._prepare(plan)
            self._free(plan)
            self._reset(plan, count)
        except ResetRefused as refused:
            self._end("refused", str(refused))
        except ResetFailed as failure:
            self._end("failed", str(failure))
        except CommandFailed as error:
            self._end("refused", f"hook before it: {error}")
        except Exception as error:  # noqa: BLE001 # the boundary: what a hook stopped must start again
            self._end("failed", f"{type(error).__name__}: {error}")
        self._restore(plan)

    def _prepare(self, plan: ResetPlan) -> None:
        """Raises ``CommandFailed`` where a hook before it fails."""
        for hook in plan.reset.before:
            self._step(f"before: {hook[0]}")
            run_command(hook, plan.hook_timeout_s, plan.environment(self._request.action))
        self._step("evidence")
        folder, kernel_log = plan.evidence / self._name, Path(plan.config.kmsg.path)
        devices = plan.seen.devices.values()
        for missing in evidence.collect_evidence(
            folder, self._request, devices, kernel_log, plan.driver_root
        ):
            self._step(missing)

    def _free(self, plan: ResetPlan) -> None:
        """Ends the jobs that may be ended; what does not end keeps its device, and nothing is reset."""
        if not self._request.ended_first:
            return
        self._check_still_allowed(plan)
        names = [member.name for member in plan.members]
        users = list_devices(plan.vendor, plan.section, record.now().boot_id, names).users
        processes = processes_to_end(self._request.ended_first, users, plan.procfs)
        stay = end_processes(processes, plan.reset.terminate_grace_ns / 1e9, plan.procfs, self._step)
        if stay:
            named = ", ".join(f"{process.command} ({process.pid})" for process in stay)
            raise ResetFailed(f"{named} did not end by SIGKILL either")

    def _reset(self, plan: ResetPlan, count: ResetCount) -> None:
        """Reset in a thread, for a vendor's call may never return; in time for the hooks after it."""
        self._check_still_allowed(plan)
        if (left_s := _left_s(plan)) <= 0:
            raise ResetRefused("no time is left for it before its deadline")
        count.begin()
        outcome: list[tuple[AttemptState, str]] = []
        order = plan.order(self._step)
        thread = threading.Thread(
            target=lambda: outcome.append(_call_vendor(plan.vendor, order)), name="reset", daemon=True
        )
        thread.start()
        thread.join(left_s)
        self.is_stuck = not outcome
        self._end(*(outcome[0] if outcome else ("timed_out", "a call of the vendor's has not come back")))
        try:
            count.end(self._state)
        except (OSError, ValueError) as error:
            self._step(f"its end is not in the record: {error}")
        if self._state in ("failed", "timed_out"):
            self._plan_bug_report(plan.bug_report(self._name))

    def _plan_bug_report(self, report: BugReport) -> None:
        if not report.is_known:
            return
        why_not = "a call of the vendor's hangs" if self.is_stuck else report.why_not()
        if why_not:
            self._step(f"no bug report: {why_not}")
        else:
            self._step(f"bug report: made afterwards, in {report.folder}")
            self.bug_report = report

    def _restore(self, plan: ResetPlan) -> None:
        """What a hook before it stopped, one after it starts: each of them is run, whatever came of it."""
        outcome = {"NODEAGENT_RESULT": self._state, "NODEAGENT_REASON": self._reason}
        for hook in plan.reset.after:
            self._step(f"after: {hook[0]}")
            try:
                run_command(hook, plan.hook_timeout_s, {**plan.environment(self._request.action), **outcome})
            except CommandFailed as error:
                self._step(f"hook after it: {error}")

    # ------------------------------------------------------------------ what is reported, what may be

    def _end(self, state: AttemptState, reason: str) -> None:
        self._state, self._reason = state, printable(reason)

    def _step(self, what: str) -> None:
        after_s = time.monotonic() - self._begun_s
        self._steps.append(ResetStep(what=printable(what), after_s=round(after_s, 3)))
        print(f"{after_s:8.3f} {printable(what)}", flush=True)

    def _check_still_allowed(self, plan: ResetPlan) -> None:
        """What has come since it was asked for. Raises ``ResetRefused``."""
        if self._is_to_end.is_set():
            raise ResetRefused("it was asked to end (SIGTERM) before it began; does the machine shut down?")
        allowed_now(plan.vendor, self._config_path, os.environ, once=self._request.once)
        try:
            why = self._folder.called_off(self._name)
        except (OSError, ValueError) as error:
            raise ResetRefused(f"whether it was called off is unknown: {error}") from error
        if why:
            raise ResetRefused(f"it was called off: {why}")


def _left_s(plan: ResetPlan) -> float:
    left_ns = plan.deadline_ns - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return left_ns / 1e9 - len(plan.reset.after) * plan.hook_timeout_s - MARGIN_S


def _call_vendor(vendor: str, order: ResetOrder) -> tuple[AttemptState, str]:
    try:
        importlib.import_module(RESETS[vendor].module).reset(order)
    except ResetRefused as error:
        return "refused", str(error)
    except ResetFailed as error:
        return "failed", str(error)
    except ResetTimedOut as error:
        return "timed_out", str(error)
    except Exception as error:  # noqa: BLE001 # the boundary: whatever went wrong is this attempt's result
        return "failed", f"{type(error).__name__}: {error}"
    return "done", "the devices have started again"
