"""In which mode what is open on a device is judged, from who uses it: worked out anew from the view."""

from dataclasses import replace

from nodeagent.core.catalog.settings import Mode, Settings
from nodeagent.core.model import JobStage, View


def settings_on(view: View, device_id: str, settings: Settings) -> Settings:
    """As in mode graceful where the tables say so, and all that use the device may be run again in place."""
    if not settings.jobs.in_place_registered:
        return settings
    using = [job for job in view.jobs if device_id in job.devices and job.stage is not JobStage.ENDED]
    are_in_place = bool(using) and all(job.stage is not None and job.policy.in_place for job in using)
    return replace(settings, mode=Mode.GRACEFUL) if are_in_place else settings
