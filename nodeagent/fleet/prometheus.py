"""The nodes as a file of targets for Prometheus (its ``file_sd_configs``).

The verdict is a label that begins with ``__meta_``: relabelling can use it, and Prometheus drops it then, so
that no series is named by it (Prometheus' documentation, Configuration, relabel_config).
"""

import asyncio
import json
import logging
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from nodeagent.fleet.state import NodeState, NodeStates

WRITE_EVERY_S: Final = 5.0
_READABLE: Final = 0o644

_log = logging.getLogger(__name__)


def targets(states: Iterable[NodeState], port: int) -> bytes:
    """A group for each node, in the order of their names. A unix socket has no host: the node's name replaces
    it.
    """
    groups = [
        {
            "targets": [f"{state.endpoint.host or state.endpoint.name}:{port}"],
            "labels": {
                "node": state.label,
                "__meta_nodeagent_verdict": str(state.verdict),
                "__meta_nodeagent_contact": str(state.contact),
            },
        }
        for state in sorted(states, key=lambda each: each.endpoint.name)
    ]
    return json.dumps(groups, indent=1).encode() + b"\n"


def write(path: Path, content: bytes) -> None:
    """Write it in one step: a reader never finds half of it. Raises ``OSError``."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as temporary:
        fresh = Path(temporary.name)
        try:
            temporary.write(content)
            temporary.flush()
            os.fchmod(temporary.fileno(), _READABLE)
            fresh.replace(path)
        except OSError:
            fresh.unlink()
            raise


async def follow_states(path: Path, port: int, node_states: NodeStates) -> None:
    """Writes the file where its content changes. A disk error is reported once, and the write is repeated."""
    written, version, problem = b"", -1, ""
    while True:
        found = node_states.version
        content = written if found == version else targets(node_states.states.values(), port)
        try:
            if content != written:
                await asyncio.to_thread(write, path, content)
            written, version, problem = content, found, ""
        except OSError as error:
            if str(error) != problem:
                problem = str(error)
                _log.error("--file-sd %s: cannot be written: %s", path, problem)
        await asyncio.sleep(WRITE_EVERY_S)
