"""What a million kernel lines cost: read from the kernel, taken apart, matched against the tables' patterns.

The lines are as a busy node logs them; one in a thousand is a fault. The peer is the obvious loop: each
pattern's ``re`` over each line, until one matches.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from nodeagent.config.load import load_config
from nodeagent.drivers.kmsg.match import Matcher
from nodeagent.drivers.kmsg.parse import parse
from nodeagent.drivers.kmsg.reader import CHUNK_RECORDS, Account, KernelLog
from nodeagent.tables.load import load_catalog
from nodeagent.wire import Pattern, as_patterns
from tests.bench.shared import kernel_log
from tests.bench.shared.daemon import ROOT
from tests.bench.shared.figures import Figure, median, spread
from tests.bench.shared.kernel_log import NeedsRoot
from tests.harness.kernel_log import KMSG

TITLE = "processor time for a million kernel lines"
MILLION = 1_000_000
LINES = 100_000
ROUNDS = 3
NAIVE_LINES = 4_000
RULES = (10, 100, 500)
BUDGET_S = 6.0
FAULT_EVERY = 1000
LINES_IN_RING = 1500


class Matches(Protocol):
    def match(self, messages: Sequence[str]) -> object: ...


Measure = Callable[[Matches, int], float]
"""Seconds of processor time for a million lines, measured on about so many."""

_ORDINARY = (
    "eth{n}: renamed from veth{x:07x}",
    "docker0: port {n}(veth{x:07x}) entered blocking state",
    "IPv6: ADDRCONF(NETDEV_CHANGE): veth{x:07x}: link becomes ready",
    'audit: type=1400 audit(1700000000.{n:03}:{x}): apparmor="STATUS" operation="profile_load" pid={x}',
    "nvme nvme{n}: {n}/0/0 default/read/poll queues",
    "pcieport 0000:{n:02x}:01.0:   device [8086:a115] error status/mask=00000001/0000{x:04x}",
    "mlx5_core 0000:{n:02x}:00.0: firmware version: 28.39.{x}",
    "EXT4-fs (nvme{n}n1): mounted filesystem with ordered data mode. Quota mode: none.",
    "perf: interrupt took too long ({x} > {n}), lowering kernel.perf_event_max_sample_rate to {x}",
    "TCP: request_sock_TCP: Possible SYN flooding on port {x}. Sending cookies.",
    "nvidia-nvswitch{n}: SXid (PCI:0000:{n:02x}:00.0): 20034, Data {{0x{x:08x}, 0x0020000{n}}}",
    "systemd[1]: Started Session {x} of User worker{n}.",
)
_DRIVERS = (
    "mlx5_core",
    "hns3",
    "i40e",
    "nvme",
    "ascend_drv",
    "amdgpu",
    "EDAC",
    "mce",
    "scsi",
    "xfs",
    "bnxt_en",
)
_FAULT_TEXTS = (
    "link down",
    "timed out",
    "fatal error",
    "reset failed",
    "ECC error",
    "hardware error",
    "stuck",
)


def run() -> Iterator[Figure]:
    patterns = list(_patterns(max(RULES)))
    try:
        with kernel_log.exclusive() as writer:
            for line in _lines(LINES_IN_RING):
                writer.write(line)
            yield from _figures("read, parsed and matched", patterns, _from_ring_s)
    except NeedsRoot as reason:
        yield from _figures(f"parsed and matched, and not read ({reason})", patterns, _from_memory_s)


def _figures(what: str, patterns: list[Pattern], measure: Measure) -> Iterator[Figure]:
    for rules in RULES:
        matcher = Matcher(patterns[:rules])
        naive = _Loop(patterns[:rules])
        rounds = [measure(matcher, LINES) for _ in range(ROUNDS)]
        yield Figure(
            name=f"{what}, {rules} rules",
            value=median(rounds),
            unit="s",
            budget=BUDGET_S,
            peer=measure(naive, NAIVE_LINES),
            peer_name="each rule's re",
            note=spread(rounds),
        )


class _Loop:
    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self._regexes = [re.compile(pattern.regex) for pattern in patterns]

    def match(self, messages: Sequence[str]) -> object:
        return [next(filter(None, (regex.match(text) for regex in self._regexes)), None) for text in messages]


def _from_ring_s(matcher: Matches, lines: int) -> float:
    """The ring over and over, as the driver reads it, until so many lines were seen."""
    log = KernelLog(str(KMSG))
    log.open()
    seen, begun_s = 0, time.process_time()
    while seen < lines:
        log.rewind()
        account = Account(None)
        drained = False
        while not drained:
            chunk = log.read()
            fresh = [record for record in chunk.records if account.admit(record.seq) is not None]
            matcher.match([record.message for record in fresh])
            seen, drained = seen + len(fresh), chunk.drained
    took_s = time.process_time() - begun_s
    log.close()
    return took_s * MILLION / seen


def _from_memory_s(matcher: Matches, lines: int) -> float:
    raw = [f"6,{number},{number},-;{line}\n".encode() for number, line in enumerate(_lines(lines))]
    begun_s = time.process_time()
    for start in range(0, lines, CHUNK_RECORDS):
        matcher.match([parse(record).message for record in raw[start : start + CHUNK_RECORDS]])
    return (time.process_time() - begun_s) * MILLION / lines


def _lines(count: int) -> Iterator[str]:
    for number in range(1, count + 1):
        if number % FAULT_EVERY:
            yield _ORDINARY[number % len(_ORDINARY)].format(n=number % 8, x=number * 7919 % 65536)
        else:
            yield kernel_log.xid_line("4000:01:00.0", 79)


def _patterns(count: int) -> Iterator[Pattern]:
    """The one of the faults, the other shipped ones, then as many more in their manner."""
    shipped = load_catalog([ROOT / "fault_codes"], load_config(None, {}).settings()).catalog.patterns
    for pattern in sorted(shipped, key=lambda pattern: pattern.id != "NV_XID")[:count]:
        yield from as_patterns([pattern])
    pci = r"(?P<pci>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"
    for number in range(len(shipped), count):
        driver = _DRIVERS[number % len(_DRIVERS)]
        text = _FAULT_TEXTS[number % len(_FAULT_TEXTS)]
        yield Pattern(
            id=f"BENCH_{number}",
            code=f"BENCH_{number}",
            regex=rf"^{driver} {pci}: .*unit {number}:? {text}",
            device="pci",
        )
