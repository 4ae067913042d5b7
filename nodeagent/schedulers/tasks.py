"""The parts of a bridge, run at once until one of them fails for good."""

import asyncio
from collections.abc import Coroutine

from nodeagent.client import ClientError


async def run_together(*parts: Coroutine[None, None, None]) -> None:
    """Until cancelled. Raises the ``ClientError`` of a part by itself; anything else comes in a group.

    Not by ``except*``: before Python 3.11.4 what is raised there comes in a group too (cpython issue 103590).
    """
    try:
        async with asyncio.TaskGroup() as tasks:
            for part in parts:
                tasks.create_task(part)
    except ExceptionGroup as failed:
        of_client, others = failed.split(ClientError)
        if of_client is None or others is not None:
            raise
        raise of_client.exceptions[0] from None
