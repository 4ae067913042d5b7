"""The order of levels, written down a second time."""

PRECEDENCE = (
    "NotHandleFault",
    "SubHealthFault",
    "RestartRequest",
    "RestartRequestFault",
    "RestartBusiness",
    "FreeRestartNPU",
    "RestartNPU",
    "PreSeparateNPU",
    "PreSeparateFault",
    "ResetFault",
    "SeparateNPU",
    "SeparateFault",
    "ManuallySeparateNPU",
)
