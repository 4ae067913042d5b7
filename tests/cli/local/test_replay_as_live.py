"""The same record has the same outcome from the kernel and from a log that says as much of it."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.drivers.kmsg.coalesce import Coalescer
from nodeagent.replay import formats
from nodeagent.replay.log import Log
from nodeagent.replay.matching import matched
from nodeagent.wire import Signal, as_patterns
from tests.drivers.kmsg.following import followed
from tests.harness.kernel_log import KernelLogDouble
from tests.shipped import shipped_catalog

ROOT = Path(__file__).parents[3]
XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus."
LOST = (
    "NVRM: The NVIDIA GPU 0000:5e:00.0\nNVRM: (PCI ID: 10de:2330) installed in this system has\n"
    "NVRM: fallen off the bus and is not responding to commands."
)
BUG = "kernel BUG at mm/slub.c:305!"

Outcome = tuple[str, str, int, bool, str]


@dataclass(frozen=True, slots=True)
class Said:
    """One record of the kernel log: when, what, by whom, and whether as the rest of another."""

    at_us: int
    text: str
    facility: int = 0
    continues: bool = False


RECORDS = [
    Said(1_000_000, "nothing of note"),
    Said(1_100_000, XID),
    Said(1_200_000, f"a name: {XID}"),
    Said(1_300_000, f"a name\n{XID}[42]: segfault at 0 ip 0 sp 0 error 4 in {XID}[0,1+2]"),
    Said(1_400_000, f"{XID}: a.out: potentially unexpected fatal signal 11."),
    Said(1_500_000, LOST),
    Said(1_600_000, f"logger[77]: {XID}", facility=1),
    Said(1_700_000, XID.replace("3b", "d8"), facility=1),
    Said(1_800_000, XID.replace("79", "63"), continues=True),
    Said(1_900_000, BUG, continues=True),
    Said(2_000_000, BUG.replace("305", "306")),
]


def raw(said: Said) -> str:
    text = "".join(
        char if 32 <= ord(char) < 127 and char != "\\" else f"\\x{ord(char):02x}" for char in said.text
    )
    return f"{said.facility << 3 | 3},{said.at_us},{said.at_us},{'c' if said.continues else '-'};{text}"


def below(head: str, said: Said) -> str:
    """As dmesg and journalctl set several lines of one message."""
    return head + said.text.replace("\n", "\n" + " " * len(head))


def stamp(said: Said) -> str:
    return f"[{said.at_us / 1e6:12.6f}]"


def with_names(said: Said) -> str:
    return below(f"{'user' if said.facility else 'kern':<6}:{'err':<6}: {stamp(said)} ", said)


def with_numbers(said: Said) -> str:
    return below(f"<{said.facility << 3 | 3}>{stamp(said)}[  T123] ", said)


def fields(said: Said) -> dict[str, str]:
    """As journald keeps it: of user space's lines without the name of the program at their beginning."""
    entry = {
        "__REALTIME_TIMESTAMP": str(said.at_us),
        "_TRANSPORT": "kernel",
        "SYSLOG_FACILITY": str(said.facility),
        "SYSLOG_IDENTIFIER": "kernel",
        "MESSAGE": said.text,
    }
    if said.facility:
        del entry["SYSLOG_IDENTIFIER"]
        writer, colon, message = said.text.partition("]: ")
        if colon:
            name, _, pid = writer.partition("[")
            entry |= {"SYSLOG_IDENTIFIER": name, "SYSLOG_PID": pid, "MESSAGE": message}
    return entry


def exported(said: Said) -> bytes:
    entry = fields(said)
    message = entry.pop("MESSAGE").encode()
    text = "".join(f"{name}={value}\n" for name, value in entry.items())
    return text.encode() + b"MESSAGE\n" + len(message).to_bytes(8, "little") + message + b"\n"


FORMS: dict[str, Callable[[Said], bytes]] = {
    "/dev/kmsg": lambda said: raw(said).encode(),
    "dmesg -x": lambda said: with_names(said).encode(),
    "dmesg -r": lambda said: with_numbers(said).encode(),
    "journalctl -o json": lambda said: json.dumps(fields(said)).encode(),
    "journalctl -o export": exported,
}


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return shipped_catalog()


@pytest.fixture
def kernel_log(tmp_path: Path) -> Iterator[KernelLogDouble]:
    double = KernelLogDouble(tmp_path)
    yield double
    double.close()


def live(catalog: Catalog, kernel_log: KernelLogDouble, records: Sequence[Said]) -> list[Outcome]:
    for said in records:
        kernel_log.write_raw(raw(said).encode() + b"\n")
    with followed(kernel_log.path, patterns=as_patterns(catalog.patterns)) as log:
        log.reports.caught_up()
        return [
            (each.code, each.device, each.count, each.trusted, each.evidence["line"])
            for each in log.reports.signals
        ]


def replayed(catalog: Catalog, file: Path) -> list[Outcome]:
    log = formats.read(file, boot_ns=0)
    assert isinstance(log, Log)
    moments = matched(log, catalog.patterns, trust_userspace=False)
    found = [moment.signal for moment in moments if moment.signal is not None]
    return [(each.code, each.device, each.count, each.trusted, each.evidence["line"]) for each in found]


@pytest.mark.parametrize("form", FORMS)
def test_a_record_has_the_same_outcome_from_the_kernel_and_from_a_log(
    catalog: Catalog, kernel_log: KernelLogDouble, tmp_path: Path, form: str
) -> None:
    marks_continuations = form == "/dev/kmsg"
    records = [said for said in RECORDS if marks_continuations or not said.continues]
    file = tmp_path / "log"
    file.write_bytes(b"".join(FORMS[form](said) + b"\n" for said in records))

    expected = live(catalog, kernel_log, records)
    assert replayed(catalog, file) == expected
    assert [outcome[:4] for outcome in expected] == [
        ("XID_79", "0000:3b:00.0", 1, True),
        ("NV_FALLEN_OFF", "0000:5e:00.0", 1, True),
        ("XID_79", "0000:d8:00.0", 1, False),
        *([("XID_63", "0000:3b:00.0", 1, True)] if marks_continuations else []),
        ("KBUG", "node", 1, True),
    ]


def test_a_storm_is_counted_as_the_daemon_counts_it(catalog: Catalog, tmp_path: Path) -> None:
    """Which wakes when a count is due, and takes each line as it comes."""
    millis = [*range(3000, 4200, 90), *range(5100, 5200, 7), 9000, 9001]
    (tmp_path / "log").write_text("".join(f"[{at_ms / 1000:12.6f}] {XID}\n" for at_ms in millis))
    log = formats.read(tmp_path / "log", boot_ns=0)
    assert isinstance(log, Log)
    counted = [
        (moment.at_ns // 1_000_000, moment.signal.count)
        for moment in matched(log, catalog.patterns, trust_userspace=False)
        if moment.signal is not None
    ]

    coalescer = Coalescer()
    expected = []
    for now_ms in range(millis[0], millis[-1] + 2000):
        signals = coalescer.expire(now_ms * 1_000_000)
        for _ in range(millis.count(now_ms)):
            signals += coalescer.add(Signal(device="a", code="A"), now_ms * 1_000_000)
        expected += [(min(now_ms, millis[-1]), signal.count) for signal in signals]
    assert counted == expected
    assert sum(count for _, count in counted) == len(millis)
    assert len(counted) < len(millis) // 2


@pytest.mark.parametrize(
    "line",
    [
        f"Jan  2 03:04:05 gpu-17 kernel[77]: {XID}",
        f"Jan  2 03:04:05 gpu-17 logger: kernel: {XID}",
        f"Jan  2 03:04:05 gpu-17 logger[77]: kernel: {XID}",
        f"2026-01-02T03:04:05.123456+00:00 gpu-17 kernel[77]: {XID}",
        f"1767323045.123456 gpu-17 logger: kernel: {XID}",
        f"[ 3600.500000] gpu-17 kernel[77]: {XID}",
        f"[ 3600.500000] gpu-17 logger[77]: {XID}",
    ],
)
def test_a_line_whose_program_is_not_the_kernel_is_not_the_kernels(
    catalog: Catalog, tmp_path: Path, line: str
) -> None:
    (tmp_path / "log").write_text(f"{line}\n")
    assert replayed(catalog, tmp_path / "log") == []


def test_an_entry_of_the_journal_that_does_not_name_where_it_is_from_is_not_trusted(
    catalog: Catalog, tmp_path: Path
) -> None:
    """Any program may call itself "kernel"; the field that journald adds is left out by --output-fields."""
    entry = fields(Said(1, XID))
    del entry["_TRANSPORT"]
    (tmp_path / "log").write_text(json.dumps(entry) + "\n")
    assert [outcome[3] for outcome in replayed(catalog, tmp_path / "log")] == [False]


@pytest.mark.parametrize(
    "head",
    [
        "[ 3600.500000][  T123] ",
        "[ 3600.500000][    C0] ",
        "[ 3600.500000] [  T123] ",
        "[Fri Jan  2 03:04:05 2026] [    C0] ",
        "[Jan 2 03:04] [   C11] ",
        "[  +0.000012] [  T123] ",
        "2026-01-02T03:04:05,123456+00:00 [  T123] ",
        "kern  :err   : [ 3600.500000] [  T123] ",
    ],
)
def test_who_called_the_kernels_printing_is_no_part_of_the_message(
    catalog: Catalog, tmp_path: Path, head: str
) -> None:
    (tmp_path / "log").write_text(f"{head}{XID}\n")
    assert [outcome[0] for outcome in replayed(catalog, tmp_path / "log")] == ["XID_79"]
