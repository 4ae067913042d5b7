"""Every Xid that there is, by NVML and by the kernel's line, through one daemon with eight GPUs."""

from typing import Any

from nodeagent.client import EventKind, Handling, Level, Verdict
from nodeagent.core.catalog.settings import Settings
from nodeagent.tables.load import load_catalog
from tests.harness.configuration import ROOT
from tests.harness.subscriber import Subscriber, without_gap
from tests.stories.conftest import Follow, LaunchGpus
from tests.stories.gpus import GpuDaemon, events_of, last_of

ALL = range(1, 177)
NOTICE = 174
"""Told and opened by nobody: the driver has ended a process."""
NVLINK = range(144, 151)
COMPANIONS = {154: "gpu0", 159: "gpu1", 45: "gpu2", 172: "gpu4", 171: "gpu3"}
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
    Handling.RESET_WHEN_IDLE,
    Handling.RESCHEDULE,
)
NUMBER_ALONE = {74: "NVLink error", 94: "Contained memory error", 95: "Uncontained memory error"}
"""Lines that say no more than NVML does: no registers, not what the driver finds the GPU to need."""


def places(explained: dict[int, dict[str, Any]]) -> dict[str, list[int]]:
    """GPU -> its Xids in order: one level a GPU, then what is apart from it, at the end those of NVLink."""
    found: dict[str, list[int]] = {name: [] for name in PLACES.values()}

    def order(xid: int) -> tuple[bool, bool, bool]:
        return xid in NVLINK, xid in COMPANIONS, explained[xid]["user_induced"]

    for xid in sorted(set(ALL) - {NOTICE}, key=order):
        row = explained[xid]
        induced = INDUCED if row["user_induced"] else PLACES[row["level"]]
        found[COMPANIONS.get(xid, induced)].append(xid)
    return found


async def explain_all(daemon: GpuDaemon) -> dict[int, dict[str, Any]]:
    return dict(zip(ALL, await daemon.explained([f"XID_{xid}" for xid in ALL]), strict=True))


def stance(row: dict[str, Any]) -> tuple[Verdict, Handling]:
    """What ``explain`` says becomes of a GPU and its work at once, where its driver asks for no recovery."""
    if row["recovery"] == "vendor" and row["level"] in ("RestartRequest", "RestartBusiness"):
        return Verdict.ALLOW, Handling.RESTART_JOB
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


async def test_all_xids_by_both_sources_are_told_once_each_as_explain_says(
    launch_gpus: LaunchGpus, follow: Follow
) -> None:
    daemon = launch_gpus("8xH100")
    subscriber = await follow(daemon)
    explained = await explain_all(daemon)
    placed = places(explained)

    for device, xids in placed.items():
        for xid in xids:
            daemon.gpus.raise_xid(device, xid)
            daemon.xid(device, xid, NUMBER_ALONE.get(xid, ""))
            await subscriber.raised(f"XID_{xid}", device)
        # What comes behind it by NVML: then everything by NVML has come.
        daemon.gpus.raise_xid(device, 150)
        await subscriber.event(EventKind.NOTICE, "XID_150.unspecified", device)

    # The same of the kernel log.
    daemon.say("nvidia-peermem nv_get_p2p_free_callback:139 ERROR detected invalid context")
    await subscriber.raised("NV_PEERMEM")

    assert {device: folded(subscriber, device) for device in placed} == {
        device: expected(xids, explained) for device, xids in placed.items()
    }
    assert sum(len(xids) for xids in placed.values()) == len(ALL) - 1
    emitted = {
        xid: events_of(subscriber, device, f"XID_{xid}") for device, xids in placed.items() for xid in xids
    }
    assert emitted == {xid: [EventKind.RAISED] for xid in ALL if xid != NOTICE}
    conditions = (await daemon.status())["conditions"]
    counts = {each["code"]: each["count"] for each in conditions if each["code"] != "NV_PEERMEM"}
    by_number_alone = {154, *NVLINK}
    assert counts == {f"XID_{xid}": 1 if xid in by_number_alone else 2 for xid in emitted}
    assert without_gap(subscriber.events)


def nvlink_units(word: str) -> list[tuple[int, str]]:
    """(Xid, unit) of every row of NVLink's tables with that word."""
    rows = load_catalog([ROOT / "fault_codes"], Settings()).catalog.rows
    parts = (row.code.split(".") for row in rows.values())
    named = [each for each in parts if len(each) == 3 and each[1] == word and each[2] != "LINK_DOWN"]
    return [(int(xid.removeprefix("XID_")), unit) for xid, _, unit in named if xid.startswith("XID_")]


def nvlink_detail(unit: str, word: str) -> str:
    """What stands behind the number and the process in the kernel's line; its words are in columns."""
    column = {"Fatal": " Fatal  "}.get(word, word)
    return f"{unit} {column} XC0 i0 Link 05 (0x00000004 0x00000040 0x00000000 0x00000000)"


async def test_nonfatal_nvlink_lines_are_notices_and_open_nothing(
    launch_gpus: LaunchGpus, follow: Follow
) -> None:
    daemon = launch_gpus("8xB200")
    subscriber = await follow(daemon)
    nonfatal = nvlink_units("Nonfatal")
    for xid, unit in nonfatal:
        daemon.xid("gpu3", xid, nvlink_detail(unit, "Nonfatal"))
        daemon.gpus.raise_xid("gpu3", xid)
    daemon.say("nvidia-peermem nv_get_p2p_free_callback:139 ERROR detected invalid context")
    await subscriber.raised("NV_PEERMEM")

    codes = {f"XID_{xid}.Nonfatal.{unit}" for xid, unit in nonfatal}
    numbers = {f"XID_{xid}.unspecified" for xid, _ in nonfatal}
    for number in numbers:
        await subscriber.event(EventKind.NOTICE, number, "gpu3")
    emitted = [event for event in subscriber.events if event.device == "gpu3"]
    assert {event.kind for event in emitted} == {EventKind.NOTICE}
    assert {event.code for event in emitted} == codes | numbers
    assert {event.verdict for event in emitted} == {Verdict.ALLOW}
    assert {xid for xid, _ in nonfatal} >= {144, 145, 146, 147, 148, 149}
    assert [each["code"] for each in (await daemon.status())["conditions"]] == ["NV_PEERMEM"]


async def test_fatal_nvlink_lines_need_a_reset_and_are_told_once_beside_their_number(
    launch_gpus: LaunchGpus, follow: Follow
) -> None:
    daemon = launch_gpus("8xB200")
    subscriber = await follow(daemon)
    fatal = nvlink_units("Fatal")
    for xid, unit in fatal:
        daemon.gpus.raise_xid("gpu3", xid)
        daemon.xid("gpu3", xid, nvlink_detail(unit, "Fatal"))
    codes = [f"XID_{xid}.Fatal.{unit}" for xid, unit in fatal]
    await subscriber.raised(codes[-1])
    explained = await daemon.explained(codes)

    raised = [event for event in subscriber.of(EventKind.RAISED) if event.device == "gpu3"]
    assert [(event.code, event.condition_level) for event in raised] == [
        (code, row["level"]) for code, row in zip(codes, explained, strict=True)
    ]
    assert {event.condition_level for event in raised} == {Level.RESTART_NPU}
    assert last_of(subscriber, "gpu3").verdict is Verdict.ISOLATE
