"""What `nodeagent replay` takes for a million lines of a kernel log, from its start to its end.

The log is dmesg's, of a busy node; one line in a hundred is a fault. The floor is what Python
takes to read the lines and do nothing with them. Where one line in four is one, those are what it costs.
"""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from nodeagent.config.load import load_config
from nodeagent.tables.load import load_catalog
from tests.bench.shared.daemon import ROOT, scratch
from tests.bench.shared.figures import Figure, median, spread

TITLE = "processor time to replay a million kernel lines"
MILLION = 1_000_000
ROUNDS = 3
PATTERNS = (10, 500)
BUDGET_S = 6.0
SELDOM = 100
OFTEN = 4

_ORDINARY = (
    "eth{n}: renamed from veth{x:07x}",
    "docker0: port {n}(veth{x:07x}) entered blocking state",
    "IPv6: ADDRCONF(NETDEV_CHANGE): veth{x:07x}: link becomes ready",
    'audit: type=1400 audit(1700000000.{n:03}:{x}): apparmor="STATUS" operation="profile_load" pid={x}',
    "nvme nvme{n}: {n}/0/0 default/read/poll queues",
    "EXT4-fs (nvme{n}n1): mounted filesystem with ordered data mode. Quota mode: none.",
    "perf: interrupt took too long ({x} > {n}), lowering kernel.perf_event_max_sample_rate to {x}",
    "TCP: request_sock_TCP: Possible SYN flooding on port {x}. Sending cookies.",
    "systemd[1]: Started Session {x} of User worker{n}.",
)
_DRIVERS = ("hns3", "i40e", "ascend_drv", "amdgpu", "EDAC", "scsi", "xfs", "bnxt_en")
_TEXTS = ("link down", "timed out", "fatal error", "reset failed", "ECC error", "stuck")
_PCI = r"(?P<pci>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"
_HEAD = 'kind = "chip"\nvendor = "bench"\n'
_PATTERN = """
[codes.BENCH_{number}]
name = "benchmark {number}"
level = "NotHandleFault"
clear_on = ["recover", "10m"]
description = "Written by a benchmark."
action = "None."

[[pattern]]
id = "BENCH_{number}"
code = "BENCH_{number}"
device = "pci"
regex = '''{regex}'''
"""


def run() -> Iterator[Figure]:
    with scratch() as directory:
        seldom = _log(directory / "seldom.log", SELDOM)
        floor_s = _floor_s(seldom)
        for patterns in PATTERNS:
            config = _config(directory, patterns)
            rounds = [_replay_s(seldom, config) for _ in range(ROUNDS)]
            yield Figure(
                name=f"{patterns} patterns, 1 line in {SELDOM} faulty",
                value=median(rounds),
                unit="s",
                budget=BUDGET_S,
                peer=floor_s,
                peer_name="reading alone",
                note=spread(rounds),
            )
        often = _log(directory / "often.log", OFTEN)
        yield Figure(
            name=f"{max(PATTERNS)} patterns, 1 line in {OFTEN} faulty",
            value=_replay_s(often, _config(directory, max(PATTERNS))),
            unit="s",
            peer=floor_s,
            peer_name="reading alone",
        )


def _replay_s(log: Path, config: Path) -> float:
    """All of the command: the interpreter's start, the tables, the patterns' compilation, the log."""
    before = _children_s()
    command = [sys.executable, "-m", "nodeagent.cli", "replay", str(log), "-o", "json"]
    subprocess.run(
        command,
        env={**os.environ, "NODEAGENT_CONFIG": str(config)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return _children_s() - before


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _floor_s(log: Path) -> float:
    begun_s = time.process_time()
    with log.open() as file:
        for _ in file:
            pass
    return time.process_time() - begun_s


def _log(path: Path, fault_every: int) -> Path:
    with path.open("w") as log:
        for number in range(1, MILLION + 1):
            log.write(f"[{number / 100:12.6f}] {_line(number, fault_every)}\n")
    return path


def _line(number: int, fault_every: int) -> str:
    turn, other = divmod(number, fault_every)
    if other:
        return _ORDINARY[number % len(_ORDINARY)].format(n=number % 8, x=number * 7919 % 65536)
    return f"{_DRIVERS[0]} 0000:{turn % 8:02x}:00.0: queue {turn % 64} unit 0: {_TEXTS[0]}"


def _config(directory: Path, patterns: int) -> Path:
    """So many patterns in all: the shipped ones where they fit, and more in their manner."""
    shipped = ROOT / "fault_codes"
    there = len(load_catalog([shipped], load_config(None, {}).settings()).catalog.patterns)
    folders = [shipped] if there < patterns else []
    own = directory / f"own-{patterns}"
    own.mkdir(exist_ok=True)
    count = patterns - there if folders else patterns
    (own / "own.toml").write_text(_HEAD + "".join(map(_pattern, range(count))))
    path = directory / f"{patterns}.toml"
    path.write_text(f"[agent]\ntables = {[str(folder) for folder in (*folders, own)]}\n")
    return path


def _pattern(number: int) -> str:
    driver, text = _DRIVERS[number % len(_DRIVERS)], _TEXTS[number % len(_TEXTS)]
    return _PATTERN.format(number=number, regex=rf"^{driver} {_PCI}: .*unit {number}:? {text}")
