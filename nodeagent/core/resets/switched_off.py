"""Resets that nobody does here by themselves: which setting says so, and what a person can do about it.

The words are the same for every order that meets this, so that none of them is a dead end.
"""

from nodeagent.core.catalog.settings import ResetSettings
from nodeagent.core.model import Condition, Device, Kind, ResetMode
from nodeagent.core.resets import asking_faults
from nodeagent.core.resets.blockers import NO_RESET
from nodeagent.core.state.state import State

Said = tuple[str, str]
"""What is said to the person, and the key of the configuration that it is about; ("", ""): nothing."""

NOTHING: Said = ("", "")

DONE = (ResetMode.ASK, ResetMode.ON)
"""The modes in which resets are done."""


def why(settings: ResetSettings, device: Device) -> Said:
    """Why a reset of the device would not be done, and how a person has it done all the same."""
    if settings.forbidden:
        again = "once that is over, reload the configuration"
        return f"resets are forbidden, also single ones by order: {settings.forbidden}; {again}", ""
    mode = settings.of_vendor(device.vendor)
    if mode in DONE:
        return NOTHING
    key = f"reset.modes.{device.vendor}" if device.vendor in settings.modes else "reset.mode"
    means = ", so that they are only reported" if mode is ResetMode.DRY_RUN else ""
    this_one = f'to have this one done: nodeagent reset {device.name} --once --reason "..."'
    each_one = f'to have each of them done: {key} = "ask" or "on", and a reload'
    off = f'resets of {device.vendor} chips are switched off: {key} is "{mode}"{means}'
    return f"{off}; {this_one}; {each_one}", key


def can_be_ordered(device: Device) -> bool:
    """Whether there is a way to reset it, by its driver."""
    return device.kind is Kind.CHIP and device.vendor != "" and NO_RESET not in device.attributes


def of_its_faults(state: State, device: Device) -> Said:
    """The same of a chip with faults that only a reset ends, in words that follow others."""
    said, key = why(state.lookup.settings.reset, device)
    ended = [each.code for each in state.on(Condition, device.id) if asking_faults.wants(state, each)]
    if not can_be_ordered(device) or not said or not ended:
        return NOTHING
    return f"; a reset ends {', '.join(dict.fromkeys(ended))}, but {said}", key
