"""The codes that MindCluster lists, with the level that it gives them."""

import json
from pathlib import Path
from typing import Any

from nodeagent.core.model import Kind

TESTS = Path(__file__).parents[2]
CHIP_LISTS = {
    "NotHandleFaultCodes": "NotHandleFault",
    "SubHealthFaultCodes": "SubHealthFault",
    "RestartRequestCodes": "RestartRequest",
    "RestartBusinessCodes": "RestartBusiness",
    "FreeRestartNPUCodes": "FreeRestartNPU",
    "RestartNPUCodes": "RestartNPU",
    "PreSeparateNPUCodes": "PreSeparateNPU",
    "SeparateNPUCodes": "SeparateNPU",
}
"""From the mildest to the strictest, as are those below."""
SWITCH_LISTS = {
    "NotHandleFaultCodes": "NotHandleFault",
    "SubHealthFaultCodes": "SubHealthFault",
    "RestartRequestFaultCodes": "RestartRequestFault",
    "ResetFaultCodes": "ResetFault",
    "SeparateFaultCodes": "SeparateFault",
}
NODE_LISTS = {
    "NotHandleFaultCodes": "NotHandleFault",
    "PreSeparateFaultCodes": "PreSeparateFault",
    "SeparateFaultCodes": "SeparateFault",
}
PUBLIC_LISTS = {
    "NotHandleFaultCodes": "NotHandleFault",
    "SubHealthFaultCodes": "SubHealthFault",
    "PreSeparateNPUCodes": "PreSeparateNPU",
    "SeparateNPUCodes": "SeparateNPU",
}


def listed(name: str, lists: dict[str, str], *within: str) -> dict[str, str]:
    """Codes of a file with their level: of several the strictest."""
    data: Any = json.loads((TESTS / "fixtures/mindcluster" / name).read_text())
    for key in within:
        data = data[key]
    assert set(data) <= set(lists)
    return {code: level for key, level in lists.items() for code in data.get(key, ())}


KINDS = {
    Kind.CHIP: (802, listed("faultCode.json", CHIP_LISTS)),
    Kind.UNIFIEDBUS: (30, listed("SwitchFaultCode.json", SWITCH_LISTS)),
    Kind.NODE: (59, listed("NodeDConfiguration.json", NODE_LISTS, "FaultTypeCode")),
    Kind.PUBLIC: (30, listed("publicFaultConfiguration.json", PUBLIC_LISTS, "publicFaultCode")),
}
