"""Every Xid that there is, by NVML and by the kernel's line, through one daemon with eight GPUs."""

from typing import Any

from nodeagent.client import EventKind, Handling, Verdict
from tests.stories.conftest import LaunchGpus, Subscribe
from tests.stories.gpu_bench import GpuDaemon, told_of
from tests.stories.subscriber import Subscriber, without_gap

ALL = range(1, 174)
NVLINK = range(144, 151)
COMPANIONS = {154: "gpu0", 159: "gpu1", 45: "gpu2", 172: "gpu4", 171: "gpu6"}
"""Xids that go with another on their GPU: each on one whose Xids are all milder, or no company of it."""
PLACES = {
    "NotHandleFault": "gpu0",
    "SubHealthFault": "gpu1",
    "RestartRequest": "gpu2",
    "RestartBusiness": "gpu3",
    "FreeRestartNPU": "gpu4",
    "RestartNPU": "gpu5",
    "PreSeparateNPU": "gpu6",
    "SeparateNPU": "gpu7",
}
INDUCED = "gpu6"

VERDICTS = (Verdict.ALLOW, Verdict.NO_NEW_JOBS, Verdict.ISOLATE)
HANDLINGS = (
    Handling.NONE,
    Handling.JOB_STRATEGY,
    Handling.RERUN_REQUEST,
    Handling.RESTART_JOB,
    Handling.RESCHEDULE,
)


def places(explained: dict[int, dict[str, Any]]) -> dict[str, list[int]]:
    """GPU -> its Xids in order: one level a GPU, then what is apart from it, at the end those of NVLink."""
    found: dict[str, list[int]] = {name: [] for name in PLACES.values()}

    def order(xid: int) -> tuple[bool, bool, bool]:
        return xid in NVLINK, xid in COMPANIONS, explained[xid]["user_induced"]

    for xid in sorted(ALL, key=order):
        row = explained[xid]
        induced = INDUCED if row["user_induced"] else PLACES[row["level"]]
        found[COMPANIONS.get(xid, induced)].append(xid)
    return found


async def explain_all(daemon: GpuDaemon) -> dict[int, dict[str, Any]]:
    told = await daemon.explained([f"XID_{xid}" for xid in ALL])
    return {xid: told[f"XID_{xid}"] for xid in ALL}


def stance(row: dict[str, Any]) -> tuple[Verdict, Handling]:
    """What ``explain`` says becomes of a GPU and its work at once."""
    first = row["modes"]["rescheduling"][0]
    return Verdict(first["verdict"]), Handling(first["handling"])


def folded(subscriber: Subscriber, device: str) -> list[tuple[str, str | None, Verdict, Handling]]:
    """Of each raised fault: code, its level, and verdict and handling of the device after it."""
    return [
        (event.code, event.condition_level, event.verdict, event.handling)
        for event in subscriber.of(EventKind.RAISED)
        if event.device == device
    ]


def expected(xids: list[int], explained: dict[int, dict[str, Any]]) -> list[tuple[Any, ...]]:
    """The same as ``explain`` has it: of all that is open the strictest."""
    found: list[tuple[Any, ...]] = []
    verdict, handling = Verdict.ALLOW, Handling.NONE
    for xid in xids:
        row = explained[xid]
        own = stance(row)
        verdict = max(verdict, own[0], key=VERDICTS.index)
        handling = max(handling, own[1], key=HANDLINGS.index)
        found.append((f"XID_{xid}", row["level"], verdict, handling))
    return found


async def test_all_173_xids_by_both_sources_are_told_once_each_as_explain_says(
    launch_gpus: LaunchGpus, subscribe: Subscribe
) -> None:
    daemon = launch_gpus("8xH100")
    await daemon.start()
    subscriber = subscribe(daemon)
    await subscriber.follow()
    explained = await explain_all(daemon)
    placed = places(explained)

    for device, xids in placed.items():
        for xid in xids:
            daemon.gpus.raise_xid(device, xid)
            daemon.xid(device, xid)
            await subscriber.raised(f"XID_{xid}", device)
        # What comes behind it by NVML: then everything by NVML has come.
        daemon.gpus.raise_xid(device, 150)
        await subscriber.event(EventKind.NOTICE, "XID_150.unspecified", device)

    assert {device: folded(subscriber, device) for device in placed} == {
        device: expected(xids, explained) for device, xids in placed.items()
    }
    assert sum(len(xids) for xids in placed.values()) == len(ALL)
    told = {xid: told_of(subscriber, device, f"XID_{xid}") for device, xids in placed.items() for xid in xids}
    assert told == {xid: [EventKind.RAISED] for xid in ALL}
    conditions = (await daemon.status())["conditions"]
    counts = {each["code"]: each["count"] for each in conditions}
    by_number_alone = {154, *NVLINK}
    assert counts == {f"XID_{xid}": 1 if xid in by_number_alone else 2 for xid in ALL}
    assert without_gap(subscriber.events)
