"""What the parts of a bridge raise, and that none goes on alone."""

import asyncio

import pytest

from nodeagent.client import ClientError
from nodeagent.schedulers.tasks import run_together

REFUSED = ClientError("PERMISSION_DENIED", "consumer 'slurm' belongs to uid:65534")


async def refused() -> None:
    raise REFUSED


async def defect() -> None:
    raise KeyError("npu3")


class Waiting:
    ended = False

    async def run(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.ended = True


async def test_what_the_daemon_refuses_is_raised_by_itself_and_ends_the_others() -> None:
    other = Waiting()
    with pytest.raises(ClientError) as raised:
        await run_together(other.run(), refused())
    assert raised.value is REFUSED
    assert other.ended


async def test_a_defect_is_not_hidden_by_what_the_daemon_refuses() -> None:
    with pytest.raises(ExceptionGroup) as raised:
        await run_together(refused(), defect())
    assert [type(each) for each in raised.value.exceptions] == [ClientError, KeyError]
