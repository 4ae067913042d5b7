"""Jobs in lines of text: one for each, in tables, in the status, and as the answer to an order."""

from nodeagent.cli.shared.text_lines import word
from nodeagent.cli.shared.time_texts import for_people
from nodeagent.messages import enums
from nodeagent.messages.pb import types_pb2

CLAIMED = "claimed"
"""What is said of a job that only claims devices, where another has its stage."""


def stage_of(job: types_pb2.Job) -> str:
    return word(enums.JOB_STAGE_OF, job.stage) if job.stage else CLAIMED


def recommended(job: types_pb2.Job) -> str:
    return word(enums.RECOMMENDATION_OF, job.recommended)


def devices_of(job: types_pb2.Job) -> str:
    return ", ".join(job.devices) or "no device"


def in_a_line(job: types_pb2.Job) -> str:
    """``job slurm:7.0: asked, run 1, on npu3: npu3 80E18005``, until when, and why."""
    parts = [stage_of(job)]
    if job.run:
        parts.append(f"run {job.run}")
    parts.append(f"on {devices_of(job)}" if job.devices else "on no device")
    if job.HasField("due_at") and job.stage != types_pb2.JOB_STAGE_ENDED:
        parts.append(f"until {for_people(job.due_at)} at the latest")
    why = f": {job.why}" if job.why else ""
    return f"job {job.name}: {', '.join(parts)}{why}"
