"""A reset in progress, as the core shows it, and its action."""

from nodeagent.core.model import (
    Action,
    DeviceView,
    Handling,
    Kind,
    Level,
    Reset,
    ResetMode,
    ResetStage,
    Verdict,
    View,
)

ID = "die0/reset#1"


def device(vendor: str = "ascend", name: str = "npu0") -> DeviceView:
    return DeviceView(
        id="die0",
        name=name,
        kind=Kind.CHIP,
        vendor=vendor,
        level=Level.RESTART_NPU,
        verdict=Verdict.ISOLATE,
        handling=Handling.RESCHEDULE,
        subhealthy=False,
        observed=True,
        observed_ns=0,
    )


def view(vendor: str = "ascend", stage: ResetStage = ResetStage.RUNNING, name: str = "npu0") -> View:
    reset = Reset(
        id=ID,
        asker_id="die0",
        members=("die0",),
        mode=ResetMode.ON,
        stage=stage,
        proposed_ns=0,
        due_ns=None,
    )
    return View(devices=(device(vendor, name),), resets=(reset,))


def action(attempt: int = 1) -> Action:
    return Action(
        id=ID, kind="reset", devices=("die0",), reasons=("80A18008",), deadline_ns=2**62, attempt=attempt
    )
