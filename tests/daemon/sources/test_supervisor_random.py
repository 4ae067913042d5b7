"""Whatever happens to workers in whatever order: what is observed is watched by one, and all heals."""

import asyncio
from random import Random

import pytest

from nodeagent.core.model import SourceBack, SourceLost
from nodeagent.daemon.workers.worker import WorkerSpec
from tests.daemon.sources.played import OPENING, Node, Watched, play, watched

DEVICES = ["chip0", "chip1", "chip2"]
SPEC = WorkerSpec(source="fake", boot_id="boot")
STEPS = 30
LIVES = 40
HEARD_WITHIN_S = 0.01
"""An end that nobody has heard of yet is no lie."""

MENDED_WITHIN_S = 300.0
"""Two calls that are late, two steps of killing, the longest back-off, and again."""


class Story:
    """Random acts, and what holds after each."""

    def __init__(self, seed: int, node: Node) -> None:
        self._random = Random(seed)
        self._node = node
        self._rests: set[str] = set()
        self._has_let_go = False

    async def __call__(self, watch: Watched) -> None:
        for _ in range(STEPS):
            await self._random.choice((self._hang, self._release, self._crash, self._rest, self._let_go))(
                watch
            )
            await asyncio.sleep(self._random.choice((0.0, 0.0005, 0.5, 4.0, 11.0, 40.0)))
            await self._holds(watch)
        await self._mend(watch)

    async def _hang(self, watch: Watched) -> None:
        device = self._random.choice([*DEVICES, OPENING])
        self._node.hang(device, in_the_kernel=self._random.random() < 0.5)

    async def _release(self, watch: Watched) -> None:
        self._node.release(self._random.choice([*DEVICES, OPENING]))

    async def _crash(self, watch: Watched) -> None:
        if self._node.alive:
            self._random.choice(self._node.alive).crash()

    async def _rest(self, watch: Watched) -> None:
        device = self._random.choice(DEVICES)
        if device in self._rests:
            await watch.supervisor.wake([device])
        else:
            await watch.supervisor.rest([device], "it is reset")
        self._rests ^= {device}

    async def _let_go(self, watch: Watched) -> None:
        if self._has_let_go:
            watch.supervisor.take_up()
        else:
            await watch.supervisor.let_go("quiesced")
        self._has_let_go = not self._has_let_go

    async def _holds(self, watch: Watched) -> None:
        await asyncio.sleep(HEARD_WITHIN_S)
        health = watch.supervisor.health()
        assert len(self._node.alive) <= 3
        if health.observing:
            assert health.state == "ready"
            assert health.pid in {worker.pid for worker in self._node.alive}

    async def _mend(self, watch: Watched) -> None:
        self._node.release(*DEVICES, OPENING)
        await watch.supervisor.wake(list(self._rests))
        if self._has_let_go:
            watch.supervisor.take_up()
        await watch.until(lambda: self._is_well(watch), MENDED_WITHIN_S)

    def _is_well(self, watch: Watched) -> bool:
        health = watch.supervisor.health()
        return health.observing and len(self._node.alive) == 1 and unobserved(watch) == set()


def unobserved(watch: Watched) -> set[str]:
    """As the core has it, "" for the source."""
    lost: set[str] = set()
    for given in watch.inputs:
        if isinstance(given, SourceLost):
            lost.add(given.device)
        elif isinstance(given, SourceBack):
            lost = lost - {given.device} if given.device else set()
    return lost


@pytest.mark.parametrize("seed", range(LIVES))
def test_a_source_is_watched_while_it_is_observed_and_well_once_all_is(seed: int) -> None:
    node = Node(DEVICES)
    watch = play(watched(SPEC, node, Story(seed, node)))
    assert node.alive == []
    assert watch.inputs
