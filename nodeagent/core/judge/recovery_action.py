"""What becomes of work next to a fault whose level names the recovery that the chip's vendor asks for.

NVIDIA's driver reports by itself what a GPU needs: nothing, a reset, a drain and a reset, a reboot (NVML's
recovery action, nvmlDeviceGpuRecoveryAction_t in nvml.h; decided in _gpuRefreshRecoveryActionInLock of
src/nvidia/src/kernel/gpu/gpu.c, open-gpu-kernel-modules). Where it does, it decides: a fault below a reset
only restarts its job, and what the driver asks for is a fault of its own next to it. A drain lets work
continue: no new jobs, and a reset once the chip is idle. It opens and closes nothing.
"""

from nodeagent.core.catalog.levels import BELOW_RESET, JOB_LEVELS, WHEN_IDLE, Stance, of_job_stance, stance
from nodeagent.core.model import Condition, Level, Recovery
from nodeagent.core.state.state import EngineState


def chip_needs_no_recovery(state: EngineState, condition: Condition) -> bool:
    """Whether the driver, or the fault itself, shows that the chip needs no recovery from it."""
    if condition.grade.level not in BELOW_RESET:
        return False
    match _recovery(state, condition):
        case Recovery.NONE:
            return True
        case Recovery.VENDOR:
            chip = state.chip_of(state.device(condition.device_id))
            return chip.traits.driver_names_recovery
        case _:
            return False


def only_restarts_its_job(state: EngineState, condition: Condition) -> bool:
    """Whether its job restarts, and that is all: the chip stays in use. So it is for an application fault
    (``user_induced``), and for one of the chip after which that needs no recovery.
    """
    if condition.grade.user_induced:
        return True
    return condition.grade.level in JOB_LEVELS and chip_needs_no_recovery(state, condition)


def waits_for_idle(state: EngineState, condition: Condition) -> bool:
    """Whether work may continue with it until the chip is reset."""
    return condition.grade.level is Level.FREE_RESTART_NPU and _recovery(state, condition) is Recovery.VENDOR


def stance_of(state: EngineState, condition: Condition) -> Stance:
    if only_restarts_its_job(state, condition):
        kind = state.device(condition.device_id).kind
        return of_job_stance(kind, rescheduling=condition.grade.rescheduling)
    if waits_for_idle(state, condition):
        return WHEN_IDLE
    return stance(condition.grade.level, condition.grade.phase, state.lookup_on(condition.device_id).settings)


def _recovery(state: EngineState, condition: Condition) -> Recovery:
    row = state.lookup.facts(condition.code).row
    return row.recovery if row is not None else Recovery.LEVEL
