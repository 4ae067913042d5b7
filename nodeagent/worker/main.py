"""The worker process: runs one driver, polls its devices, and speaks ``wire`` on its pipes.

    stdin ──> main thread ──┬─> source thread   create, open, devices, follow   ──┐
       Configure, Poll      ├─> poller          poll("npu0"), poll("npu1") ...    ├──> stdout
                            └─> poller          if a poll takes too long        ──┘   (one lock)

The main thread waits for stdin alone, so it always sees its end; then it ends the process with ``os._exit``,
even if a library hangs. The thread that makes a call writes its reply: a call that hangs is a reply that
never comes, and the others go on. The daemon judges this; no call is given up here.

Nothing is restarted or filtered here, and no rule clock is known. Exit status: 0 on request; 69 if the source
is unavailable (reported before); 70 for a bug (the traceback is on stderr); 65 if the daemon sent an invalid
message.
"""

import argparse
import faulthandler
import importlib
import math
import os
import resource
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn, cast

from nodeagent import wire
from nodeagent.drivers.api import CallFailed, Create, Driver, Follower, Population, Reading, Unavailable
from nodeagent.system.streams import LineSplitter
from nodeagent.vendors import DRIVERS
from nodeagent.wire import MAX_TEXT, SOURCE, Configure, Pattern, Patterns, Poll, ProtocolError
from nodeagent.worker.pollers import Pollers, name_thread
from nodeagent.worker.reports import Outlet, SourceLink

EXIT_UNAVAILABLE = 69
EXIT_BUG = 70
EXIT_INVALID_MESSAGE = 65
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
    Host(module, reports).serve(orders)


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
    """One driver, asked what the daemon wants to know."""

    def __init__(self, module: str, reports: int) -> None:
        self._module = module
        self._outlet = Outlet(reports, may_hold=lambda: self._pollers.is_more)
        self._pollers = Pollers(self._poll, self._outlet.flush)
        self._link = SourceLink(self._outlet.reply)
        self._driver: Driver | None = None
        self._follows = False
        self._known = Population()
        self._devices: set[str] = set()
        self._skip: frozenset[str] = frozenset()
        self._patterns: Sequence[Pattern] | None = None
        self._reloading = threading.Lock()

    def serve(self, orders: int) -> NoReturn:
        """Read orders until the pipe's end. Never returns, never waits for a driver."""
        signal.signal(signal.SIGTERM, _on_sigterm)
        splitter = LineSplitter(wire.MAX_LINE_BYTES)
        status = 0
        try:
            for chunk in self._read(orders):
                for line in splitter.feed(chunk):
                    self._obey(wire.decode_request(line))
        except _End:
            pass
        except ProtocolError as error:
            print(f"invalid message from the daemon: {error}", file=sys.stderr, flush=True)
            status = EXIT_INVALID_MESSAGE
        self._end(status)

    def _read(self, orders: int) -> Iterator[bytes]:
        """What comes by that pipe, until its end; meanwhile no poll holds up others."""
        readable = select.poll()
        readable.register(orders, select.POLLIN)
        while True:
            again_s = self._pollers.relieve()
            if not readable.poll(None if again_s is None else math.ceil(again_s * 1000)):
                continue
            if not (chunk := os.read(orders, 65536)):
                return
            yield chunk

    def _end(self, status: int) -> NoReturn:
        self._link.close()
        if self._driver is not None:
            closer = threading.Thread(target=_or_report(self._driver.close), daemon=True)
            closer.start()
            closer.join(CLOSE_LIMIT_S)
        os._exit(status)

    def _obey(self, order: wire.Request) -> None:
        match order:
            case Configure():
                self._skip = frozenset(order.skip)
                self._thread("source", lambda: self._run_source(order))
            case Poll():
                self._ask(order)
            case Patterns():
                self._patterns = order.patterns
                self._thread("reload", _or_report(self._reload))

    def _ask(self, poll: Poll) -> None:
        here = []
        for device in poll.devices:
            if device in self._devices:
                here.append(device)
            elif device == SOURCE and self._follows:
                self._link.ask(poll)
            else:
                self._outlet.reply(poll.id, device, 0, CallFailed(f"no device {device!r} here"))
        if here:
            self._pollers.ask(poll.id, here)

    def _thread(self, name: str, target: Callable[[], None]) -> None:
        def run() -> None:
            name_thread(threading.get_native_id(), name)
            target()

        threading.Thread(target=run, name=name, daemon=True).start()

    # ------------------------------------------------------------------ source thread

    def _run_source(self, configure: Configure) -> None:
        try:
            self._driver = driver = self._open(configure)
            self._reload()
            population = driver.devices()
        except (Unavailable, CallFailed, ValueError, ImportError) as error:
            self._report_unavailable(error)
        except Exception:  # noqa: BLE001  the boundary of the source thread; the daemon reports the exit
            _give_up()
        with self._or_end():
            self._settle(population)
            self._follows = isinstance(driver, Follower)
            if not self._follows:
                self._devices.add(SOURCE)
            self._outlet.send(
                wire.Hello(
                    devices=tuple(population.devices),
                    missing=tuple(population.missing),
                    follows=self._follows,
                )
            )
            if isinstance(driver, Follower):
                driver.follow(self._link)
                if not self._link.closed:
                    raise RuntimeError("the driver stopped following its source")

    @contextmanager
    def _or_end(self) -> Iterator[None]:
        """The boundary of what is done for the source as a whole: where it fails, the process ends."""
        try:
            yield
        except Unavailable as error:
            self._report_unavailable(error)
        except Exception:  # noqa: BLE001  this is the boundary; the daemon reports the exit
            _give_up()

    def _report_unavailable(self, error: Exception) -> NoReturn:
        missing = error.missing if isinstance(error, Unavailable) else ()
        self._outlet.send(
            wire.Unavailable(
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
        """These are polled from now on, but for those to be skipped."""
        self._known = population
        self._devices |= {device.device for device in population.devices} - self._skip
        self._pollers.suffice_for(len(self._devices | {SOURCE}))

    # ------------------------------------------------------------------ pollers

    def _poll(self, poll_id: int, device: str) -> None:
        if device == SOURCE:
            with self._or_end():
                self._list_again(poll_id)
            return
        begun_ns = _now_ns()
        outcome: Reading | CallFailed
        try:
            outcome = cast(Driver, self._driver).poll(device)
        except CallFailed as error:
            outcome = error
        except Exception as error:  # noqa: BLE001  the boundary of the device's poll; the reply reports it
            traceback.print_exc()
            outcome = CallFailed(f"the driver failed: {error!r}")
        self._outlet.reply(poll_id, device, begun_ns, outcome)

    def _list_again(self, poll_id: int) -> None:
        """The poll of the source, of a driver that only polls: enumerate again, report what changed."""
        begun_ns = _now_ns()
        outcome: Reading | CallFailed
        try:
            population = cast(Driver, self._driver).devices()
        except CallFailed as error:
            outcome = error
        else:
            outcome = Reading(readings=population.readings)
            if population != self._known:
                self._settle(population)
                self._outlet.send(
                    wire.Devices(devices=tuple(population.devices), missing=tuple(population.missing))
                )
        self._outlet.reply(poll_id, SOURCE, begun_ns, outcome)


def _or_report(call: Callable[[], None]) -> Callable[[], None]:
    """The boundary of a thread without a waiter: an error is printed on stderr; the daemon logs it."""

    def run() -> None:
        try:
            call()
        except Exception:  # noqa: BLE001  this is the boundary
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
