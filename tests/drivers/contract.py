"""What every driver owes the daemon, shown with its real worker process under a real supervisor.

A driver's tests inherit ``DriverContract`` and give it a ``Scene``: how to bring its library, or what
stands in for it, into each situation. A situation that cannot arise for a driver is skipped by
raising ``Inapplicable`` with the reason, so that the report says so.
"""

import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import pytest

from nodeagent.core.model import ActiveSet, Signal, SourceAbsent, SourceLost
from nodeagent.daemon.workers.worker import WorkerSpec
from tests.daemon.staged import HANG_S, Staged, is_alive, staged


class Inapplicable(Exception):
    """This cannot happen to the driver; the text says why."""


class Scene(ABC):
    """One driver with the world it looks at. ``device`` is where ``fault`` will show."""

    device: str

    @abstractmethod
    def spec(self, **given: Any) -> WorkerSpec:
        """The driver's worker on this scene, with short time-outs."""

    @abstractmethod
    def fault(self) -> str:
        """Something breaks on ``device``; the code the driver is to report. Another one at each call."""

    @abstractmethod
    def remove_library(self) -> None:
        """What the driver opens is not there."""

    @abstractmethod
    def remove_devices(self) -> None:
        """The library is there, and no device is."""

    @abstractmethod
    def make_busy(self) -> str:
        """Calls for ``device`` fail for now; the text that is to be reported."""

    @abstractmethod
    def babble(self) -> None:
        """The library gives nonsense."""

    @abstractmethod
    def lose_device(self) -> None:
        """``device``, or the source itself where it has none, goes while it is watched."""

    @abstractmethod
    def restore(self) -> None:
        """Undo whatever of the above was done."""


class DriverContract:
    """Inherit, and define the fixture ``scene``."""

    @pytest.fixture(autouse=True)
    def _skip_what_cannot_arise(self, monkeypatch: pytest.MonkeyPatch, scene: Scene) -> None:
        for name in ("remove_library", "remove_devices", "make_busy", "babble", "lose_device"):
            monkeypatch.setattr(scene, name, _or_skip(getattr(scene, name)))

    async def test_library_absent(self, scene: Scene) -> None:
        scene.remove_library()
        async with staged(scene.spec(required=False, absent_retry_s=0.1)) as stage:
            await stage.until(lambda: stage.health.restarts >= 1, "another look for it")
            assert [type(given) for given in stage.inputs] == [SourceAbsent]
            scene.restore()
            await stage.back()

    async def test_library_absent_where_it_is_required(self, scene: Scene) -> None:
        scene.remove_library()
        async with staged(scene.spec(required=True)) as stage:
            lost = await stage.lost()
            await stage.until(lambda: stage.health.restarts >= 1, "another look for it")
            assert [given for given in stage.inputs if isinstance(given, SourceLost)] == [lost]
            assert lost.required
            scene.restore()
            await stage.back()

    async def test_no_device(self, scene: Scene) -> None:
        scene.remove_devices()
        async with staged(scene.spec()) as stage:
            await stage.back()
            assert all(given.assertion == "recover" for given in stage.inputs if isinstance(given, Signal))

    async def test_busy(self, scene: Scene) -> None:
        reported = scene.make_busy()
        async with staged(scene.spec()) as stage:
            lost = await stage.until(
                lambda: next((given for given in stage.inputs if isinstance(given, SourceLost)), None)
            )
            assert reported in lost.reason
            assert stage.faults("driver_unresponsive") == []
            scene.restore()
            await stage.back(lost.device)

    async def test_fault_is_reported(self, scene: Scene) -> None:
        async with staged(scene.spec()) as stage:
            await stage.back()
            await _shown(stage, scene, scene.fault())

    async def test_hang(self, scene: Scene) -> None:
        async with staged(scene.spec(call_deadline_s=HANG_S)) as stage:
            await stage.back()
            pid = stage.health.pid
            assert pid is not None
            os.kill(pid, signal.SIGSTOP)
            await stage.signal(f"driver_unresponsive.{stage.health.source}", "node", "occur")
            await stage.lost()
            before = len(stage.inputs)
            code = scene.fault()
            await stage.back(after=before)
            await _shown(stage, scene, code)
            assert not is_alive(pid)

    async def test_crash(self, scene: Scene) -> None:
        async with staged(scene.spec()) as stage:
            await stage.back()
            first = scene.fault()
            await _shown(stage, scene, first)
            pid = stage.health.pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            crashed = f"worker_crashed.{stage.health.source}"
            await stage.signal(crashed, "node", "occur")
            second = scene.fault()
            await _shown(stage, scene, second)
            await stage.until(
                lambda: stage.faults(crashed) == [("node", "occur"), ("node", "recover")] or None
            )
            assert _reported(stage, scene, first) == 1

    async def test_garbage(self, scene: Scene) -> None:
        async with staged(scene.spec()) as stage:
            await stage.back()
            pid = stage.health.pid
            scene.babble()
            await _shown(stage, scene, scene.fault())
            assert stage.health.pid == pid
            assert stage.health.garbled == 0

    async def test_device_lost(self, scene: Scene) -> None:
        async with staged(scene.spec()) as stage:
            await stage.back()
            before = len(stage.inputs)
            scene.lose_device()
            lost = await stage.until(
                lambda: next(
                    (given for given in stage.inputs[before:] if isinstance(given, SourceLost)), None
                )
            )
            before = len(stage.inputs)
            scene.restore()
            await stage.back(lost.device, after=before)
            await _shown(stage, scene, scene.fault())


def _or_skip(bring_about: Callable[[], Any]) -> Callable[[], Any]:
    def call() -> Any:
        try:
            return bring_about()
        except Inapplicable as why:
            pytest.skip(str(why))

    return call


def _reported(stage: Staged, scene: Scene, code: str) -> int:
    """How often the fault was reported; by a list of active codes it counts once, however often listed."""
    signals = [given for given in stage.inputs if isinstance(given, Signal)]
    listed = any(
        given.device == scene.device and code in [active.code for active in given.codes]
        for given in stage.inputs
        if isinstance(given, ActiveSet)
    )
    reported = sum(given.count for given in signals if (given.device, given.code) == (scene.device, code))
    return reported or int(listed)


async def _shown(stage: Staged, scene: Scene, code: str) -> None:
    await stage.until(lambda: _reported(stage, scene, code), code)
    assert _reported(stage, scene, code) == 1
