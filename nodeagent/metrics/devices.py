"""Devices, open faults and actions as metrics, from the published view and from events since the start."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from nodeagent.core.machines.resets import OUTCOME
from nodeagent.core.model import (
    ActionState,
    DeviceView,
    Event,
    EventKind,
    Handling,
    HoldKind,
    Kind,
    Level,
    ResetMode,
    Verdict,
    View,
)
from nodeagent.tables.levels import LEVELS_OF_KIND

_IDENTITY: Final = ("product", "serial", "pci", "slot", "firmware", "driver", "group")
"""Attributes by which a person finds and orders the part: see docs/attributes.md."""


def device_metrics(view: View, *, all_states: bool = False) -> Iterator[Metric]:
    """One series for the state that a device is in; ``all_states``: also one with 0 for each other state."""
    names = ["device", "kind"]
    verdicts = GaugeMetricFamily(
        "nodeagent_device_verdict", "1 for the device's verdict.", labels=[*names, "verdict"]
    )
    handlings = GaugeMetricFamily(
        "nodeagent_device_handling", "1 for the device's handling.", labels=[*names, "handling"]
    )
    levels = GaugeMetricFamily(
        "nodeagent_device_level", "1 for the device's level.", labels=[*names, "level"]
    )
    observed = GaugeMetricFamily(
        "nodeagent_device_observed", "1 while a source observes the device.", labels=names
    )
    info = GaugeMetricFamily(
        "nodeagent_device_info",
        "1; the labels name the part.",
        labels=[*names, "id", "vendor", *_IDENTITY],
    )
    for device in view.devices:
        of = [device.name, device.kind]
        for verdict in Verdict if all_states else (device.verdict,):
            verdicts.add_metric([*of, verdict], float(verdict is device.verdict))
        for handling in Handling if all_states else (device.handling,):
            handlings.add_metric([*of, handling], float(handling is device.handling))
        for level in _levels(device) if all_states else (device.level,):
            levels.add_metric([*of, level], float(level is device.level))
        observed.add_metric(of, float(device.observed))
        info.add_metric(
            [*of, device.id, device.vendor, *(device.attributes.get(key, "") for key in _IDENTITY)], 1
        )
    yield from (verdicts, handlings, levels, observed, info)


def _levels(device: DeviceView) -> list[Level]:
    levels = [*LEVELS_OF_KIND[device.kind]]
    if device.kind is Kind.CHIP:
        levels.append(Level.MANUALLY_SEPARATE_NPU)
    return levels if device.level in levels else [*levels, device.level]


def verdicts_since(view: View, wall_offset_ns: int) -> Metric:
    """``wall_offset_ns`` makes a wall time of a time of the rules."""
    since = GaugeMetricFamily(
        "nodeagent_device_verdict_since_seconds",
        "Since when the device has its verdict, unix time; absent while no change of it is known.",
        labels=["device", "kind"],
    )
    for device in view.devices:
        if device.verdict_since_ns:
            since.add_metric([device.name, device.kind], (device.verdict_since_ns + wall_offset_ns) / 1e9)
    return since


def open_metrics(view: View, wall_offset_ns: int) -> Iterator[Metric]:
    """``wall_offset_ns`` as in ``verdicts_since``."""
    names = {device.id: device.name for device in view.devices}
    conditions = GaugeMetricFamily(
        "nodeagent_conditions", "Open conditions.", labels=["device", "code", "level", "injected"]
    )
    for (device, code, level, injected), count in Counter(
        (names.get(each.device_id, each.device_id), each.code, each.level, str(each.origin.injected).lower())
        for each in view.conditions
    ).items():
        conditions.add_metric([device, code, level, injected], count)
    promotions = GaugeMetricFamily("nodeagent_promotions", "Promotions in force.", labels=["device", "rule"])
    for (device, rule), count in Counter(
        (names.get(each.device_id, each.device_id), each.rule) for each in view.promotions if each.effective
    ).items():
        promotions.add_metric([device, rule], count)
    holds = GaugeMetricFamily("nodeagent_holds", "Holds in force.", labels=["device", "kind"])
    for (device, kind), count in Counter(
        (names.get(each.device_id, each.device_id), each.kind) for each in view.holds
    ).items():
        holds.add_metric([device, kind], count)
    quiesced = GaugeMetricFamily(
        "nodeagent_quiesced",
        "1 while the node is quiesced on purpose, else 0.",
        float(any(each.kind is HoldKind.QUIESCE for each in view.holds)),
    )
    yield from (conditions, promotions, holds, quiesced)
    yield from _since(view, names, wall_offset_ns)


def _since(view: View, names: Mapping[str, str], wall_offset_ns: int) -> Iterator[Metric]:
    opened = GaugeMetricFamily(
        "nodeagent_condition_since_seconds",
        "When the fault was found that is open, unix time.",
        labels=["device", "code"],
    )
    held = GaugeMetricFamily(
        "nodeagent_hold_since_seconds",
        "Since when the device is held out of service, unix time.",
        labels=["device", "kind"],
    )
    conditions = [(each.device_id, each.code, each.presence.opened_ns) for each in view.conditions]
    holds = [(each.device_id, each.kind, each.since_ns) for each in view.holds]
    for family, found in ((opened, conditions), (held, holds)):
        oldest = _oldest(((names.get(device, device), what), at_ns) for device, what, at_ns in found)
        for labels, at_ns in oldest.items():
            family.add_metric(labels, (at_ns + wall_offset_ns) / 1e9)
        yield family


def _oldest(found: Iterable[tuple[tuple[str, ...], int]]) -> Mapping[tuple[str, ...], int]:
    """Of several with the same labels the oldest time."""
    oldest: dict[tuple[str, ...], int] = {}
    for labels, at_ns in found:
        oldest[labels] = min(oldest.get(labels, at_ns), at_ns)
    return oldest


_RESET = "reset"
_MODES = tuple(mode for mode in ResetMode if mode is not ResetMode.OFF)


class ActionCounts:
    """Counts the ends of actions as events report them; each attempt ends once."""

    def __init__(self) -> None:
        self._ended: dict[tuple[str, str], int] = dict.fromkeys(
            ((mode, state) for mode in _MODES for state in ActionState), 0
        )

    def count(self, event: Event) -> None:
        if event.kind is EventKind.ACTION_FINISHED:
            key = (event.evidence.get("mode", ""), event.evidence.get(OUTCOME, ""))
            if key in self._ended:
                self._ended[key] += 1

    def family(self) -> Metric:
        ended = CounterMetricFamily(
            "nodeagent_actions",
            "Actions that ended since start, by how; each attempt is one.",
            labels=["kind", "mode", "state"],
        )
        for (mode, state), number in self._ended.items():
            ended.add_metric([_RESET, mode, state], number)
        return ended


def actions_in_progress(view: View, wall_offset_ns: int) -> Iterator[Metric]:
    """``wall_offset_ns`` as in ``verdicts_since``."""
    names = {device.id: device.name for device in view.devices}
    in_progress = GaugeMetricFamily(
        "nodeagent_actions_in_progress", "Actions that have not ended.", labels=["kind", "mode", "stage"]
    )
    since = GaugeMetricFamily(
        "nodeagent_action_since_seconds",
        "When the action in progress was proposed, unix time; the device is the one whose fault asked for"
        " it.",
        labels=["device", "kind", "mode", "stage"],
    )
    resets = [each for each in view.resets if not each.has_ended]
    for (mode, stage), number in Counter((each.mode, each.stage) for each in resets).items():
        in_progress.add_metric([_RESET, mode, stage], number)
    proposed = _oldest(
        ((names.get(each.asker_id, each.asker_id), _RESET, each.mode, each.stage), each.proposed_ns)
        for each in resets
    )
    for labels, at_ns in proposed.items():
        since.add_metric(labels, (at_ns + wall_offset_ns) / 1e9)
    yield from (in_progress, since)
