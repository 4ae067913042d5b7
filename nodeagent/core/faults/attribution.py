"""Whose an occurrence is: the job, and the place on the device that the kernel's lines name.

A program that fails as often as its user likes says nothing of the device, nor of the programs of others: so
rules may count by that (``attributed_window``). Nothing here counts.
"""

from collections.abc import Mapping

from nodeagent.core.devices import occupancy
from nodeagent.core.model import Claimed, Holder
from nodeagent.core.rules.attributed_window import PLACE, SEPARATOR
from nodeagent.core.state.state import State

_NAMED = 2
"""Places in the evidence: more say no more than that it was not one."""


def job_of(state: State, device_id: str, evidence: Mapping[str, str]) -> str:
    """The job whose fault it is, "" where that is unknown.

    A single claim says it, since a claim is for the whole device; else the process that the kernel's line
    names; else the only job that holds the device, or held it until just now.
    """
    claimed = state.get(Claimed, device_id)
    if claimed is not None and len(claimed.jobs) == 1:
        return claimed.jobs[0][0]
    holders = occupancy.late_holders(state, device_id)
    if occupancy.names_holder(evidence):
        pid = int(evidence[occupancy.PID])
        return next((_job(holder) for holder in holders if holder.pid == pid), _of_pid(pid))
    jobs = {_job(holder) for holder in holders}
    return jobs.pop() if len(jobs) == 1 else ""


def gathered(
    before: Mapping[str, str], reported: Mapping[str, str], *, same_occurrence: bool
) -> Mapping[str, str]:
    """The evidence of a condition with the process and the places that another signal of it names.

    ``same_occurrence``: it may be of the same one, which several lines, and the driver, report. It is not
    where it names another process.
    """
    after = dict(before)
    if occupancy.names_holder(reported):
        is_other = occupancy.names_holder(before) and before[occupancy.PID] != reported[occupancy.PID]
        same_occurrence = same_occurrence and not is_other
        after[occupancy.PID] = reported[occupancy.PID]
    elif not same_occurrence:
        after.pop(occupancy.PID, None)
    known = after.pop(PLACE, "").split(SEPARATOR)
    places = [
        place
        for place in dict.fromkeys((*(known if same_occurrence else ()), reported.get(PLACE, "")))
        if place
    ]
    if places:
        after[PLACE] = SEPARATOR.join(places[:_NAMED])
    return after


def _job(holder: Holder) -> str:
    return holder.job or _of_pid(holder.pid)


def _of_pid(pid: int) -> str:
    return f"pid {pid}"
