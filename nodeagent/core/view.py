"""The view of the engine's state: an immutable value. It judges nothing and changes nothing."""

from nodeagent.core.judge.judge import judgement
from nodeagent.core.judge.observed import last_observed_ns
from nodeagent.core.machines import job_views
from nodeagent.core.model import (
    NODE,
    Baseline,
    Claimed,
    Condition,
    Device,
    DeviceProcesses,
    DeviceView,
    Hold,
    Promotion,
    Reset,
    Shown,
    Source,
    View,
)
from nodeagent.core.state.names import natural
from nodeagent.core.state.state import EngineState


def view_of(state: EngineState) -> View:
    """The node comes first, then the devices in the order of their names."""
    views = [_device_view(state, device) for device in state.all(Device)]
    return View(
        now_ns=state.now_ns,
        boot_id=state.era.boot_id,
        digest=state.era.digest,
        devices=tuple(sorted(views, key=lambda view: (view.name != NODE, natural(view.name)))),
        conditions=tuple(state.all(Condition)),
        promotions=tuple(state.all(Promotion)),
        holds=tuple(state.all(Hold)),
        sources=tuple(source for source in state.all(Source) if not source.absent),
        resets=tuple(state.all(Reset)),
        jobs=job_views.views(state),
        baselines=tuple(state.all(Baseline)),
    )


def _device_view(state: EngineState, device: Device) -> DeviceView:
    now = judgement(state, device)
    held = state.get(DeviceProcesses, device.id)
    claimed = state.get(Claimed, device.id)
    shown = state.get(Shown, device.id)
    return DeviceView(
        id=device.id,
        name=device.name,
        kind=device.kind,
        vendor=device.vendor,
        level=now.level,
        verdict=now.verdict,
        handling=now.handling,
        subhealthy=now.subhealthy,
        network_unhealthy=now.network_unhealthy,
        observed=now.observed,
        observed_ns=state.now_ns if now.observed else last_observed_ns(state, device),
        reasons=now.reasons,
        attributes=device.attributes,
        holders=None if held is None else held.holders,
        claims=() if claimed is None else claimed.jobs,
        source=device.source,
        verdict_since_ns=0 if shown is None else shown.verdict_since_ns,
    )
