"""The worker process: hosts one driver, one thread per device, and speaks ``protocol`` on its pipes.

    stdin ──> main thread ──┬─> source thread   create, open, devices, follow   ──┐
       Configure, Poll      ├─> thread of npu0  poll("npu0")                      ├──> stdout
                            └─> thread of npu1  poll("npu1")                    ──┘   (one lock)

The main thread only reads stdin, so it always notices its end; then it ends the process with
``os._exit``, whatever hangs in a library. The threads take turns, past any that stays too long. A reply
is written by the thread that made the call, so a thread that hangs is a reply that never comes. The daemon
judges that; nothing here has a time-out.

It restarts nothing, filters nothing and knows no rule clock. Exit status: 0 told to end, 69 the
source is unavailable (said before), 70 a bug (the traceback is on stderr), 65 the daemon made no sense.
"""

import argparse
import faulthandler
import importlib
import os
import queue
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import NoReturn, cast

from nodeagent.drivers.api import CallFailed, Create, Driver, Follower, Population, Reading, Unavailable
from nodeagent.vendors import DRIVERS
from nodeagent.worker import protocol
from nodeagent.worker.outlet import Outlet, SourceLink
from nodeagent.worker.protocol import (
    MAX_TEXT,
    SOURCE,
    Configure,
    LineSplitter,
    Pattern,
    Patterns,
    Poll,
    ProtocolError,
)
from nodeagent.worker.turns import Turns

EXIT_UNAVAILABLE = 69
EXIT_BUG = 70
EXIT_NONSENSE = 65
CLOSE_LIMIT_S = 1.0

SWITCH_INTERVAL_S = 0.0005
"""A library's callback waits for the interpreter this long at most while another thread computes."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Serve until stdin ends or SIGTERM comes. ``--module`` names a driver module that is not in the list."""
    parser = argparse.ArgumentParser(
        prog="nodeagent.worker", description="Run one driver, fed by the daemon."
    )
    parser.add_argument("name", help=f"driver: {', '.join(DRIVERS)}")
    parser.add_argument("--module", help="a driver module in place of the listed one; for contract tests")
    options = parser.parse_args(arguments)
    if not options.module and options.name not in DRIVERS:
        parser.error(f"no driver {options.name!r}; there are: {', '.join(DRIVERS)}")
    module = options.module or DRIVERS[options.name].module
    faulthandler.enable(all_threads=False)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    orders, reports = _take_over_pipes()
    turns = Turns()
    Host(module, Outlet(reports, may_hold=lambda: turns.awaited), turns).serve(orders)


def _take_over_pipes() -> tuple[int, int]:
    """Private copies of stdin and stdout: a library that reads or prints must not meet the protocol."""
    orders, reports = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return orders, reports


class _End(Exception):
    """SIGTERM."""


class Host:
    """One driver and its threads."""

    def __init__(self, module: str, outlet: Outlet, turns: Turns) -> None:
        self._module = module
        self._outlet = outlet
        self._turns = turns
        self._link = SourceLink(outlet.reply)
        self._driver: Driver | None = None
        self._devices: dict[str, queue.SimpleQueue[int]] = {}
        self._skip: frozenset[str] = frozenset()
        self._patterns: Sequence[Pattern] | None = None
        self._reloading = threading.Lock()

    def serve(self, orders: int) -> NoReturn:
        """Read orders until the pipe's end. Never returns, never waits for a driver."""
        signal.signal(signal.SIGTERM, _on_sigterm)
        splitter = LineSplitter()
        status = 0
        try:
            while chunk := os.read(orders, 65536):
                for line in splitter.feed(chunk):
                    self._obey(protocol.decode_order(line))
        except _End:
            pass
        except ProtocolError as error:
            print(f"cannot make sense of the daemon: {error}", file=sys.stderr, flush=True)
            status = EXIT_NONSENSE
        self._end(status)

    def _end(self, status: int) -> NoReturn:
        self._link.close()
        if self._driver is not None:
            closer = threading.Thread(target=_or_report(self._driver.close), daemon=True)
            closer.start()
            closer.join(CLOSE_LIMIT_S)
        os._exit(status)

    def _obey(self, order: protocol.Order) -> None:
        match order:
            case Configure():
                self._skip = frozenset(order.skip)
                self._thread("source", lambda: self._run_source(order))
            case Poll():
                for device in order.devices:
                    if device == SOURCE:
                        self._link.ask(order)
                    elif (asked := self._devices.get(device)) is not None:
                        asked.put(order.id)
                    else:
                        self._outlet.reply(order.id, device, 0, CallFailed(f"no device {device!r} here"))
            case Patterns():
                self._patterns = order.patterns
                self._thread("reload", _or_report(self._reload))

    def _thread(self, name: str, target: Callable[[], None]) -> None:
        def run() -> None:
            # The daemon reads it in /proc to tell which device's call is stuck; the kernel keeps 15 bytes.
            Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(name[:15])
            target()

        threading.Thread(target=run, name=name, daemon=True).start()

    # ------------------------------------------------------------------ source thread

    def _run_source(self, configure: Configure) -> None:
        try:
            self._driver = driver = self._open(configure)
            self._reload()
            population = driver.devices()
        except (Unavailable, CallFailed, ValueError, ImportError) as error:
            self._say_unavailable(error)
        except Exception:  # noqa: BLE001  the rim of the source thread; the daemon reports the exit
            _give_up()
        try:
            self._settle(population)
            follows = isinstance(driver, Follower)
            self._outlet.send(
                protocol.Hello(
                    devices=tuple(population.devices), missing=tuple(population.missing), follows=follows
                )
            )
            if isinstance(driver, Follower):
                driver.follow(self._link)
            else:
                self._list_devices(driver, population)
            if not self._link.closed:
                raise RuntimeError("the driver stopped following its source")
        except Unavailable as error:
            self._say_unavailable(error)
        except Exception:  # noqa: BLE001  the rim of the source thread; the daemon reports the exit
            _give_up()

    def _say_unavailable(self, error: Exception) -> NoReturn:
        missing = error.missing if isinstance(error, Unavailable) else ()
        self._outlet.send(
            protocol.Unavailable(
                reason=str(error)[:MAX_TEXT],
                errno=getattr(error, "errno", 0),
                absent=isinstance(error, Unavailable) and error.absent,
                missing=tuple(missing),
                code=(error.code or None) if isinstance(error, Unavailable) else None,
            )
        )
        os._exit(EXIT_UNAVAILABLE)

    def _open(self, configure: Configure) -> Driver:
        create = cast(Create, importlib.import_module(self._module).create)
        driver = create(configure, self._outlet)
        driver.open()
        return driver

    def _reload(self) -> None:
        """Always the newest patterns, however many reloads overtake each other; once the driver is open."""
        with self._reloading:
            if self._driver is not None and self._patterns is not None:
                self._driver.reload(self._patterns)

    def _settle(self, population: Population) -> None:
        """A thread for each device that has none yet, but for those to be skipped."""
        for device in population.devices:
            name = device.device
            if name not in self._devices and name not in self._skip:
                self._devices[name] = queue.SimpleQueue()
                self._thread(name, partial(self._run_device, name, self._devices[name]))

    def _list_devices(self, driver: Driver, known: Population) -> None:
        """The source's polls of a driver that only polls: enumerate again, tell what changed."""
        while not self._link.closed:
            for poll in self._link.wait():
                with self._turn():
                    known = self._list_anew(driver, known, poll)

    def _list_anew(self, driver: Driver, known: Population, poll: Poll) -> Population:
        begun_ns = _now_ns()
        outcome: Reading | CallFailed = Reading()
        try:
            population = driver.devices()
        except CallFailed as error:
            population, outcome = known, error
        else:
            outcome = Reading(readings=population.readings)
        if population != known:
            self._settle(population)
            self._outlet.send(
                protocol.Devices(devices=tuple(population.devices), missing=tuple(population.missing))
            )
        self._outlet.reply(poll.id, SOURCE, begun_ns, outcome)
        return population

    # ------------------------------------------------------------------ device threads

    def _run_device(self, device: str, asked: "queue.SimpleQueue[int]") -> None:
        driver = cast(Driver, self._driver)
        while True:
            poll_id = asked.get()
            with self._turn():
                begun_ns = _now_ns()
                outcome: Reading | CallFailed
                try:
                    outcome = driver.poll(device)
                except CallFailed as error:
                    outcome = error
                except Exception as error:  # noqa: BLE001  the rim of the device's thread; the reply reports it
                    traceback.print_exc()
                    outcome = CallFailed(f"the driver failed: {error!r}")
                self._outlet.reply(poll_id, device, begun_ns, outcome)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """The last one in a row may hang: what others have said by then is sent before."""
        with self._turns.one():
            if not self._turns.awaited:
                self._outlet.flush()
            yield


def _or_report(call: Callable[[], None]) -> Callable[[], None]:
    """The rim of a thread nobody waits for: what goes wrong is told on stderr, which the daemon logs."""

    def run() -> None:
        try:
            call()
        except Exception:  # noqa: BLE001  this is the rim
            traceback.print_exc()

    return run


def _give_up() -> NoReturn:
    traceback.print_exc()
    sys.stderr.flush()
    os._exit(EXIT_BUG)


def _on_sigterm(_number: int, _frame: FrameType | None) -> None:
    raise _End


def _now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
