"""Healthy runs that look like a hang for a while, and what cannot be judged: nothing ever acts on them."""

from dataclasses import replace
from typing import Final

from nodeagent.job.sample import ProgramPhase
from nodeagent.job.session.values import HangStage
from tests.job.hang.cases import NEVER, Expected, Library
from tests.job.hang.hangs import GPU_HANGS, GPU_TRAINS, NPU_HANGS, NPU_TRAINS, STEPS
from tests.job.hang.parts import (
    GPU_STEADY,
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

LOOKALIKES: Final = Library()
add = LOOKALIKES.add

ON: Final = replace(NPU_TRAINS, minutes=20)
LONG: Final = replace(NPU_HANGS, minutes=50)
"""Ranks and chips stand still for longer than the hang time, for a good reason."""

WRITER: Final = Does(bytes=40e6, calls=200, cpu=2)

add(
    "a checkpoint is written by another process",
    NPU_TRAINS,
    replace(LONG, helpers={"writer": WRITER}),
    ON,
    expected=NEVER,
)
add(
    "a checkpoint is written by another process through a mapping",
    NPU_TRAINS,
    replace(LONG, helpers={"writer": replace(WRITER, mapped=True, calls=0, cpu=1)}),
    ON,
    expected=NEVER,
)
add(
    "a checkpoint is written by the ranks through a mapping",
    NPU_TRAINS,
    replace(LONG, ranks=Does(bytes=30e6, mapped=True)),
    ON,
    expected=NEVER,
)
add(
    "a checkpoint of twenty minutes that only waits for the disk",
    NPU_TRAINS,
    replace(LONG, minutes=20, ranks=replace(SLEEPS, state="D")),
    ON,
    expected=Expected(suspected_min=75, ends=(HangStage.CLEARED,)),
)
add(
    "an evaluation on the chips without input or output",
    NPU_TRAINS,
    replace(LONG, ranks=LEAN, chips=Shows(use=30, spread=12, power=180)),
    ON,
    expected=NEVER,
)
add(
    "an evaluation on the CPU of the ranks",
    NPU_TRAINS,
    replace(LONG, ranks=SPINS),
    ON,
    expected=Expected(suspected_min=90, ends=(HangStage.CLEARED,)),
)
add(
    "an evaluation of forty minutes that is told as a phase",
    replace(NPU_TRAINS, beats=STEPS),
    replace(LONG, minutes=40, beats=Beating(every_s=60, phase=ProgramPhase.EVAL, advances=False)),
    replace(ON, beats=STEPS),
    expected=NEVER,
)
add(
    "a checkpoint of an hour that is told as a phase, with one beat",
    replace(NPU_TRAINS, beats=STEPS),
    replace(LONG, minutes=0.5, beats=Beating(every_s=20, phase=ProgramPhase.CHECKPOINT, advances=False)),
    replace(LONG, minutes=60),
    replace(ON, beats=STEPS),
    expected=NEVER,
)
add(
    "a graph is compiled in a child",
    NPU_TRAINS,
    replace(LONG, helpers={"compiler": Does(bytes=20_000, calls=30, cpu=55)}),
    ON,
    expected=NEVER,
)
add(
    "a graph is compiled by children that live for seconds",
    NPU_TRAINS,
    replace(LONG, spawns=2),
    ON,
    expected=NEVER,
)
add(
    "loader workers fill their buffers",
    NPU_TRAINS,
    replace(LONG, helpers={f"loader{n}": Does(bytes=8e6, calls=90, cpu=20) for n in range(4)}),
    ON,
    expected=NEVER,
)
add(
    "a slow loader: a step every four minutes",
    NPU_TRAINS,
    Act(minutes=120, ranks=LEAN, chips=replace(NPU_WORKS, wave_s=240)),
    ranks=2,
    expected=NEVER,
)
add(
    "a slow loader: work for an hour, twenty minutes of waiting",
    *[NPU_TRAINS, replace(NPU_HANGS, minutes=20)] * 4,
    ranks=2,
    expected=Expected(suspected_min=75, ends=(HangStage.CLEARED, HangStage.CLEARED, HangStage.CLEARED)),
)
add(
    "a debugger holds a rank",
    NPU_TRAINS,
    replace(LONG, one_rank=replace(SLEEPS, state="t")),
    ON,
    expected=NEVER,
)
add(
    "a debugger holds a rank from before it is suspected, twice",
    NPU_TRAINS,
    *[
        replace(LONG, minutes=18),
        replace(LONG, minutes=20, one_rank=replace(SLEEPS, state="t")),
    ]
    * 2,
    ON,
    expected=Expected(suspected_min=75, ends=(HangStage.DROPPED, HangStage.DROPPED)),
)
add("all ranks are stopped", NPU_TRAINS, replace(LONG, ranks=replace(SLEEPS, state="T")), ON, expected=NEVER)
add(
    "the machine is paused for two hours",
    NPU_TRAINS,
    replace(NPU_HANGS, minutes=120, unseen=True),
    ON,
    expected=NEVER,
)
add(
    "the machine is paused for two hours, with beats",
    replace(NPU_TRAINS, beats=STEPS),
    replace(NPU_HANGS, minutes=120, unseen=True),
    replace(ON, beats=STEPS),
    expected=NEVER,
)
add(
    "a line of the log every ten minutes at 99 % use",
    Act(minutes=30, ranks=TRAINS, chips=GPU_WORKS),
    Act(minutes=150, ranks=Does(bytes=300, calls=1, cpu=58, burst=4000), chips=GPU_STEADY),
    expected=NEVER,
)
add(
    "power is capped at 60 %, the links cannot be read",
    Act(minutes=30, ranks=LEAN, chips=replace(GPU_WORKS, traffic=None)),
    Act(minutes=90, ranks=LEAN, chips=replace(GPU_STEADY, power=330, traffic=None)),
    expected=NEVER,
)
add(
    "thermal throttling at 40 % of the power, with traffic",
    Act(minutes=30, ranks=LEAN, chips=GPU_WORKS),
    Act(minutes=90, ranks=LEAN, chips=replace(GPU_STEADY, power=220, traffic=2e9)),
    expected=NEVER,
)
add(
    "an inference server is idle at night",
    Act(minutes=60, ranks=TRAINS, chips=NPU_WORKS),
    replace(NPU_HANGS, minutes=360),
    ON,
    ranks=2,
    kind="inference",
    expected=Expected(confirmed_min=90, suspected_min=75, ends=(HangStage.CLEARED,)),
)
add(
    "a notebook waits for its user",
    Act(minutes=30, ranks=TRAINS, chips=GPU_WORKS),
    Act(minutes=100, ranks=SLEEPS, chips=Shows(use=0, power=70, traffic=0)),
    ranks=1,
    kind="notebook",
    expected=Expected(confirmed_min=60, suspected_min=45),
)
add(
    "a loud launcher over quiet ranks that compute",
    NPU_TRAINS,
    Act(minutes=60, ranks=LEAN, chips=NPU_WORKS, launcher=Does(bytes=5e6, calls=900, cpu=50)),
    expected=NEVER,
)
add(
    "the chips cannot be read",
    NPU_TRAINS,
    replace(LONG, minutes=90, chips=replace(NPU_IDLE, known=False)),
    expected=NEVER,
)
add("the daemon is down", NPU_TRAINS, replace(LONG, minutes=90, chips=None), expected=NEVER)
add(
    "the ranks cannot be read",
    NPU_TRAINS,
    replace(LONG, minutes=90, ranks=replace(SLEEPS, readable=False)),
    expected=NEVER,
)
add(
    "a chip is being profiled, its use reads 0",
    NPU_TRAINS,
    replace(LONG, minutes=90, ranks=LEAN, one_chip=replace(NPU_IDLE, power=250, profiling=True)),
    ON,
    expected=NEVER,
)
add(
    "a chip has a fault",
    NPU_TRAINS,
    replace(LONG, minutes=90, one_chip=replace(NPU_IDLE, handling="RESTART_JOB")),
    expected=NEVER,
)
add(
    "the launcher begins all ranks anew, and they prepare for long",
    NPU_TRAINS,
    replace(LONG, minutes=100, relaunched=True),
    ON,
    expected=NEVER,
)
add(
    "a rank computes in Python while the chips are idle",
    NPU_TRAINS,
    replace(LONG, minutes=75, one_rank=Does(cpu=8)),
    expected=Expected(confirmed_min=120, suspected_min=90),
)
add(
    "a first step of ninety minutes",
    Act(minutes=5, ranks=TRAINS, chips=NPU_IDLE),
    replace(LONG, minutes=90),
    ON,
    expected=NEVER,
)
add(
    "a first step of ninety minutes, with beats",
    Act(
        minutes=5,
        ranks=TRAINS,
        chips=NPU_IDLE,
        beats=Beating(every_s=60, phase=ProgramPhase.LOAD, advances=False),
    ),
    replace(LONG, minutes=90, beats=Beating(every_s=60, advances=False)),
    replace(ON, beats=STEPS),
    expected=NEVER,
)
add(
    "a start that takes three hours is told only",
    Act(minutes=5, ranks=TRAINS, chips=NPU_IDLE),
    replace(LONG, minutes=175),
    ranks=2,
    expected=Expected(confirmed_min=120.17),
)
add(
    "chips that try kernels for four minutes, then a long compilation",
    Act(minutes=4, ranks=TRAINS, chips=NPU_WORKS),
    replace(LONG, minutes=60),
    ON,
    expected=NEVER,
)
add(
    "a steady job that is never armed hangs: told only",
    Act(minutes=150, ranks=LEAN, chips=GPU_STEADY),
    replace(GPU_HANGS, minutes=40, chips=Shows(use=0, power=70, traffic=0), ranks=SLEEPS),
    ranks=2,
    expected=Expected(confirmed_min=180, suspected_min=165),
)
add(
    "beats are late, the chips vary",
    replace(NPU_TRAINS, beats=STEPS),
    Act(minutes=70, ranks=LEAN, chips=NPU_WORKS),
    expected=Expected(confirmed_min=120, suspected_min=90),
)
add(
    "beats are late, a rank is busy",
    replace(NPU_TRAINS, beats=STEPS),
    Act(minutes=70, ranks=TRAINS, chips=NPU_IDLE),
    expected=Expected(confirmed_min=120, suspected_min=90),
)
add(
    "beats of slow steps are never late",
    Act(minutes=200, ranks=LEAN, chips=replace(NPU_WORKS, wave_s=300), beats=Beating(every_s=300)),
    ranks=2,
    expected=NEVER,
)
add(
    "ranks wait at full use for one that computes",
    GPU_TRAINS,
    replace(GPU_HANGS, minutes=50, one_rank=SPINS, one_chip=Shows(use=0, power=70, traffic=0)),
    replace(GPU_TRAINS, minutes=10),
    expected=Expected(suspected_min=90, ends=(HangStage.CLEARED,)),
)
add(
    "one rank asleep, the others spin, nobody knows who holds which chip",
    GPU_TRAINS,
    replace(GPU_HANGS, minutes=70, one_rank=SLEEPS, one_chip=Shows(use=0, power=70, traffic=0)),
    holders=False,
    expected=Expected(confirmed_min=120, suspected_min=90),
)
add(
    "counters of the links begin at 0 again",
    GPU_TRAINS,
    replace(GPU_TRAINS, chips=replace(GPU_STEADY, is_reset=True), ranks=LEAN),
    expected=NEVER,
)
add(
    "ranks write sixty megabytes every six minutes, the chips idle",
    NPU_TRAINS,
    replace(LONG, minutes=120, ranks=Does(burst=60e6, burst_s=360)),
    ranks=2,
    expected=NEVER,
)
add(
    "a job that never uses one of its chips is not armed: told only",
    replace(NPU_TRAINS, minutes=100, one_chip=NPU_IDLE),
    replace(LONG, minutes=60),
    ranks=2,
    expected=Expected(confirmed_min=130, suspected_min=120.17),
)
add(
    "work that shows as no use, but as power",
    NPU_TRAINS,
    replace(LONG, minutes=75, ranks=replace(SLEEPS, cpu=1), chips=replace(NPU_IDLE, power=200)),
    ON,
    expected=NEVER,
)
