"""Runs that hang, and when that is confirmed: half an hour, or the beats' own limit, after the hang began."""

from dataclasses import replace
from typing import Final

from nodeagent.job.sample import ProgramPhase
from tests.job.hang.cases import Expected, Library
from tests.job.hang.parts import (
    GPU_STEADY,
    GPU_WAITS,
    GPU_WORKS,
    LEAN,
    NPU_IDLE,
    NPU_WORKS,
    SLEEPS,
    SPINS,
    TRAINS,
    Act,
    Beating,
    Does,
    Shows,
)

HANGS: Final = Library()
add = HANGS.add

NPU_TRAINS: Final = Act(minutes=60, ranks=TRAINS, chips=NPU_WORKS)
NPU_HANGS: Final = Act(minutes=40, ranks=SLEEPS, chips=NPU_IDLE)
GPU_TRAINS: Final = Act(minutes=60, ranks=TRAINS, chips=GPU_WORKS)
GPU_HANGS: Final = Act(minutes=40, ranks=SPINS, chips=GPU_WAITS)
STEPS: Final = Beating(every_s=20)

add("npu: all ranks wait", NPU_TRAINS, NPU_HANGS, expected=Expected(acts_min=90, suspected_min=75))
add(
    "npu: ranks read and write little",
    replace(NPU_TRAINS, ranks=LEAN),
    NPU_HANGS,
    expected=Expected(acts_min=90, suspected_min=75),
)
add(
    "npu: power cannot be read",
    replace(NPU_TRAINS, chips=replace(NPU_WORKS, power=None)),
    replace(NPU_HANGS, chips=replace(NPU_IDLE, power=None)),
    expected=Expected(acts_min=90, suspected_min=75),
)
add(
    "npu: heartbeats of a logger go on",
    NPU_TRAINS,
    replace(NPU_HANGS, ranks=Does(bytes=600, calls=3, cpu=1)),
    expected=Expected(acts_min=90, suspected_min=75),
)
add(
    "npu: a watchdog dumps its stacks every twelve minutes",
    NPU_TRAINS,
    replace(NPU_HANGS, ranks=Does(burst=80e6, burst_s=720)),
    expected=Expected(acts_min=90.17, suspected_min=75.17),
)
add(
    "gpu: full use at a third of the power",
    GPU_TRAINS,
    GPU_HANGS,
    expected=Expected(acts_min=90, suspected_min=75),
)
add(
    "gpu: the links cannot be read",
    replace(GPU_TRAINS, chips=replace(GPU_WORKS, traffic=None)),
    replace(GPU_HANGS, chips=replace(GPU_WAITS, traffic=None)),
    expected=Expected(acts_min=90, suspected_min=75),
)
add(
    "gpu: power cannot be read",
    replace(GPU_TRAINS, chips=replace(GPU_WORKS, power=None)),
    replace(GPU_HANGS, chips=replace(GPU_WAITS, power=None)),
    expected=Expected(acts_min=90, suspected_min=75),
)
add(
    "gpu: at 98 % after steady use",
    Act(minutes=15, ranks=TRAINS, chips=GPU_WORKS),
    replace(GPU_TRAINS, chips=GPU_STEADY),
    replace(GPU_HANGS, chips=replace(GPU_WAITS, use=98)),
    expected=Expected(acts_min=105, suspected_min=90),
)
add(
    "npu: one rank of eight asleep, the launcher still writes",
    NPU_TRAINS,
    replace(NPU_HANGS, launcher=Does(bytes=900_000, calls=60, cpu=2)),
    expected=Expected(acts_min=90, suspected_min=75),
    ranks=8,
)
add(
    "gpu: one rank of eight asleep, the others spin",
    GPU_TRAINS,
    replace(GPU_HANGS, one_rank=SLEEPS, one_chip=Shows(use=0, power=70, traffic=0)),
    expected=Expected(acts_min=90, suspected_min=75),
    ranks=8,
)
add(
    "npu: right after a checkpoint",
    NPU_TRAINS,
    Act(minutes=4, ranks=Does(bytes=300e6, calls=900, cpu=30), chips=NPU_IDLE),
    NPU_HANGS,
    expected=Expected(acts_min=94, suspected_min=79),
)
add(
    "npu: the hang time is ten minutes",
    NPU_TRAINS,
    replace(NPU_HANGS, minutes=20),
    minutes=10,
    expected=Expected(acts_min=70, suspected_min=67.67),
)
add(
    "npu: the hang time is three hours",
    NPU_TRAINS,
    replace(NPU_HANGS, minutes=190),
    minutes=180,
    ranks=2,
    expected=Expected(acts_min=240, suspected_min=150),
)
add(
    "npu: soon after it began to train",
    Act(minutes=5, ranks=TRAINS, chips=NPU_IDLE),
    Act(minutes=15, ranks=TRAINS, chips=NPU_WORKS),
    NPU_HANGS,
    expected=Expected(acts_min=50, suspected_min=35),
)
add(
    "npu: after the launcher began its ranks anew",
    NPU_TRAINS,
    replace(NPU_TRAINS, relaunched=True, minutes=30),
    NPU_HANGS,
    expected=Expected(acts_min=120, suspected_min=105),
)
add(
    "npu: chips cannot be read for five minutes of it",
    NPU_TRAINS,
    replace(NPU_HANGS, minutes=20),
    replace(NPU_HANGS, minutes=5, chips=replace(NPU_IDLE, known=False)),
    NPU_HANGS,
    expected=Expected(acts_min=95, suspected_min=75),
)
add(
    "npu: idle loader workers stay",
    replace(NPU_TRAINS, helpers={"loader": Does(bytes=50e6, calls=500, cpu=30)}),
    replace(NPU_HANGS, helpers={"loader": Does(bytes=100, calls=2, cpu=0.2)}),
    expected=Expected(acts_min=90.83, suspected_min=75.83),
)
add(
    "beats: the next step does not come",
    replace(NPU_TRAINS, beats=STEPS),
    NPU_HANGS,
    expected=Expected(acts_min=90, suspected_min=75),
)
add(
    "beats: steps stand still, beats go on",
    replace(NPU_TRAINS, beats=STEPS),
    replace(NPU_HANGS, beats=replace(STEPS, advances=False)),
    expected=Expected(acts_min=90, suspected_min=75),
)
add(
    "beats: a run that tells its phases is found in ten minutes",
    replace(NPU_TRAINS, beats=STEPS),
    Act(
        minutes=8,
        ranks=TRAINS,
        chips=NPU_WORKS,
        beats=Beating(every_s=20, phase=ProgramPhase.EVAL, advances=False),
    ),
    replace(NPU_TRAINS, beats=STEPS, minutes=20),
    NPU_HANGS,
    expected=Expected(acts_min=98.33, suspected_min=98),
)
add(
    "beats: slow steps have a longer limit",
    replace(NPU_TRAINS, beats=Beating(every_s=150)),
    Act(
        minutes=8,
        ranks=TRAINS,
        chips=NPU_WORKS,
        beats=Beating(every_s=20, phase=ProgramPhase.EVAL, advances=False),
    ),
    replace(NPU_TRAINS, beats=Beating(every_s=150), minutes=20),
    NPU_HANGS,
    expected=Expected(acts_min=103.33, suspected_min=103),
)
add(
    "beats: in an evaluation, after two hours",
    replace(NPU_TRAINS, beats=STEPS),
    Act(
        minutes=130,
        ranks=SLEEPS,
        chips=NPU_IDLE,
        beats=Beating(every_s=60, phase=ProgramPhase.EVAL, advances=False),
    ),
    ranks=2,
    expected=Expected(acts_min=181),
)
add(
    "beats: after a rollback",
    replace(NPU_TRAINS, beats=STEPS),
    Act(minutes=10, ranks=TRAINS, chips=NPU_WORKS, beats=Beating(every_s=20, step=40)),
    NPU_HANGS,
    expected=Expected(acts_min=100, suspected_min=85),
)
add(
    "beats: the daemon is down",
    Act(minutes=60, ranks=TRAINS, chips=None, beats=STEPS),
    Act(minutes=40, ranks=SLEEPS, chips=None),
    holders=False,
    expected=Expected(acts_min=90.33, suspected_min=90),
)
add(
    "beats: steady chips that never vary",
    replace(GPU_TRAINS, chips=GPU_STEADY, beats=STEPS),
    GPU_HANGS,
    expected=Expected(acts_min=90, suspected_min=75),
)
add(
    "beats: suspected while unknown, then confirmed",
    replace(NPU_TRAINS, beats=STEPS),
    replace(NPU_HANGS, minutes=10),
    replace(NPU_HANGS, minutes=6, ranks=replace(SLEEPS, state="t")),
    NPU_HANGS,
    expected=Expected(acts_min=96, suspected_min=81),
)
add(
    "npu: all chips but one vary",
    replace(NPU_TRAINS, one_chip=Shows(use=100, power=280)),
    NPU_HANGS,
    expected=Expected(acts_min=90, suspected_min=75),
)
add(
    "beats: late, and the chips cannot be read now and then",
    replace(NPU_TRAINS, beats=STEPS),
    Act(
        minutes=8,
        ranks=TRAINS,
        chips=NPU_WORKS,
        beats=Beating(every_s=20, phase=ProgramPhase.EVAL, advances=False),
    ),
    replace(NPU_TRAINS, beats=STEPS, minutes=20),
    replace(NPU_HANGS, minutes=8),
    *[
        replace(NPU_HANGS, minutes=1 / 6, chips=replace(NPU_IDLE, known=False)),
        replace(NPU_HANGS, minutes=1 / 3),
    ]
    * 8,
    NPU_HANGS,
    expected=Expected(acts_min=100.17, suspected_min=98),
)
add(
    "npu: ranks that wrote little still write heartbeats",
    replace(NPU_TRAINS, ranks=LEAN),
    replace(NPU_HANGS, ranks=Does(bytes=600, calls=2)),
    expected=Expected(acts_min=90, suspected_min=75),
)
add(
    "npu: ranks that wrote much still poll",
    replace(NPU_TRAINS, ranks=replace(TRAINS, calls=6000)),
    replace(NPU_HANGS, ranks=Does(bytes=60_000, calls=30)),
    expected=Expected(acts_min=90, suspected_min=75),
)
