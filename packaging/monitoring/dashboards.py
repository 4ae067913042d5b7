"""All dashboards, as the JSON that Grafana imports. It needs Grafana 10.1 or later."""

import json
from collections.abc import Mapping
from typing import Final

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from monitoring.fleet import fleet
from monitoring.node import node

_DASHBOARDS: Final = {"nodeagent-fleet.json": fleet, "nodeagent-node.json": node}


def texts() -> Mapping[str, str]:
    """Each file's text by its name."""
    return {name: _text(made()) for name, made in _DASHBOARDS.items()}


def _text(dashboard: Dashboard) -> str:
    return json.dumps(dashboard.build(), cls=JSONEncoder, indent=2, sort_keys=True) + "\n"
