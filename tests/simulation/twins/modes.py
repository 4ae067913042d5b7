"""In which mode what is open on a device is judged, from who uses it: worked out anew from the view."""

from dataclasses import replace

from nodeagent.core.catalog.settings import Mode, Settings
from nodeagent.core.model import JobStage, View


def settings_on(view: View, device_id: str, settings: Settings) -> Settings:
    """As in mode graceful where the tables say so, and all that use the device may be run again in place.
    Training, and nothing else, has no request to make again.
    """
    using = [job for job in view.jobs if device_id in job.devices and job.stage is not JobStage.ENDED]
    if not using:
        return settings
    if settings.jobs.in_place_registered and all(
        job.stage is not None and job.policy.in_place for job in using
    ):
        return replace(settings, mode=Mode.GRACEFUL)
    if settings.mode is Mode.RESCHEDULING and all(job.kind == "training" for job in using):
        return replace(settings, request_tolerance_ns=0)
    return settings
