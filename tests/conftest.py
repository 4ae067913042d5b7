"""What every test may ask for: the kernel log for itself, and to be skipped where it lacks root.

What is tried at random is the same in each run, and no example is too slow for a slow machine. Tests run
several at once, in processes of pytest-xdist; what there is but once is kept to one process here.
"""

import fcntl
import gc
import os
import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

from tests import computed_once
from tests.forked.forks import Forks
from tests.harness.kernel_log import KMSG, KMSG_LOCK, KMSG_RATE
from tests.shipped import shipped_catalog

settings.register_profile(
    "nodeagent", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("nodeagent")

MACHINES = Path(__file__).parent / "e2e"

WriteKernelLine = Callable[[str], None]

_patch = pytest.MonkeyPatch()
_forks = Forks()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite the golden files of the tests that run")


def pytest_configure(config: pytest.Config) -> None:
    # What a shell starts in the background ignores these, and so would whatever a test starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    # The threads that gRPC starts in what a test forks would find their files closed there.
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
    computed_once.remember(_patch)
    if getattr(config.option, "numprocesses", None):
        shipped_catalog()  # those processes find it in the cache
    _forks.begin(_patch)


def pytest_unconfigure() -> None:
    _patch.undo()
    _forks.end()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays to the end: no search for garbage goes through it, now or in any test."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Before xdist reads the groups and -m the markers, which they do once all is collected."""
    assert isinstance(item, pytest.Function)
    if item.path.is_relative_to(MACHINES):
        item.add_marker("systemd")
    if "kmsg_lock" in item.fixturenames:
        item.add_marker("kmsg")
    if (group := _group(item)) is not None:
        item.add_marker(pytest.mark.xdist_group(group))
    if os.geteuid() != 0 and item.get_closest_marker("root"):
        item.add_marker(pytest.mark.skip(reason="needs root"))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """xdist 3.8.0 appends a test's group to its name where pytest 9.2 does not read it (``_nodeid``, see
    xdist/remote.py): without this no test has a group, and nobody says so.
    """
    if not getattr(config.option, "loadgroup", False):
        return
    items.sort(key=_turn)
    for item in items:
        mark = item.get_closest_marker("xdist_group")
        if mark is not None and not item.nodeid.endswith(f"@{mark.args[0]}"):
            item._id = item.id.parse(f"{item.nodeid}@{mark.args[0]}")


def _turn(item: pytest.Item) -> tuple[int, int]:
    """The groups first, each in its order; then the slow ones, so that none goes on alone at the end. What is
    left comes mixed, the same way each time: those that wait leave the processors to those that compute.
    """
    if item.get_closest_marker("xdist_group"):
        return 0, 0
    return 1 if item.get_closest_marker("slow") else 2, crc32(item.nodeid.encode())


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """A test is reported by a name under which it can be run again, without the group that xdist appends."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return  # the process that runs them all knows them with the group
    name, bracket, group = report.nodeid.rpartition("]")
    report.nodeid = f"{name}{bracket}{group.partition('@')[0]}"


def _group(item: pytest.Function) -> str | None:
    """The tests of one group run one after another in one process: those of the kernel log, those that boot
    machines, those that say so, and those that share a fixture of their file or folder: it is made once.
    """
    for resource in ("systemd", "kmsg"):
        if item.get_closest_marker(resource):
            return resource
    if (mark := item.get_closest_marker("xdist_group")) is not None:
        return str(mark.args[0])
    shared = (
        definition.baseid
        for definitions in item._fixtureinfo.name2fixturedefs.values()
        for definition in definitions
        if definition.scope in ("module", "package", "session")
    )
    return min(filter(None, shared), default=None)


@pytest.fixture
def kmsg_lock() -> Iterator[None]:
    """The kernel log is one for the whole machine: one test at a time uses it, with no rate limit."""
    with KMSG_LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        rate = KMSG_RATE.read_text()
        KMSG_RATE.write_text("on\n")
        yield
        KMSG_RATE.write_text(rate)


@pytest.fixture
def write_kernel_line(kmsg_lock: None) -> WriteKernelLine:
    """Writes one line to the kernel log, as a privileged program can: facility user, priority error."""

    def write(text: str) -> None:
        # In one write and with its newline, or readers see the record only when the next one comes.
        with KMSG.open("wb", buffering=0) as kmsg:
            kmsg.write(f"<3>{text}\n".encode())

    return write
