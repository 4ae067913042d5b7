"""One device's faults are its own; a new part begins with nothing."""

from nodeagent.core.model import ALL_DEVICES, ActiveSet, CounterMark, Edge, EventKind, ProcessesListed, Signal
from tests.simulation.history import Broken, Step
from tests.simulation.twins.rows import is_known, is_related
from tests.simulation.watch import Invariant

_OF_FAULTS = {EventKind.RAISED, EventKind.CLEARED, EventKind.PROMOTED, EventKind.LEVEL_CHANGED}


class NoOtherDevice(Invariant):
    """Relation rules, codes of no row and correlation may look further: those codes are left out."""

    name = "a device's faults never act on another"

    def on_step(self, step: Step) -> None:
        given = step.given
        if (
            not isinstance(given, Signal | ActiveSet | ProcessesListed | Edge | CounterMark)
            or given.device == ALL_DEVICES
        ):
            return
        named = {given.device}
        named |= {
            device.id
            for device in step.after.devices
            if given.device in (device.name, device.id, device.attributes.get("pci"))
        }
        for event in step.events:
            own = event.device_id in named or event.device in named
            if event.kind not in _OF_FAULTS or own or event.code == "too_many_faults":
                continue
            if is_known(step.catalog, event.code) and not is_related(step.catalog, event.code):
                raise Broken(self.name, f"{given} {event.kind} {event.code} on {event.device}")


class StartsClean(Invariant):
    name = "a new part starts clean"

    def on_step(self, step: Step) -> None:
        for event in step.events:
            if event.kind is not EventKind.DEVICE_REPLACED:
                continue
            ids = (event.device_id, event.evidence["was"])
            kept = [
                cell.id
                for cells in (step.after.conditions, step.after.promotions, step.after.holds)
                for cell in cells
                if cell.device_id in ids
            ]
            if kept:
                raise Broken(self.name, f"{event.device_id} has {kept} from {event.evidence['was']}")
