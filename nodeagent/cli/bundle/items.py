"""What an archive for support holds: one row an item, in the order in which it is collected and listed.

All of it only reads, and changes nothing on the node. ``nvidia-bug-report.sh`` is not run: it takes minutes
and may let the driver restart; what a reset has left of it is in the folder of the resets.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nodeagent.cli.bundle import texts
from nodeagent.cli.bundle.sources import (
    BundledNode,
    FoundFiles,
    MadeText,
    OtherProgram,
    OwnCommand,
    Source,
    these,
)

MIB: Final = 1 << 20
_END: Final = {"keeps_end": True, "limit_bytes": 8 * MIB, "limit_s": 30.0}
_VENDOR: Final = {"limit_s": 30.0}
_UNITS: Final = ("nodeagent.service", "nodeagent-*")
_PACKAGES: Final = (
    *("nodeagent*", "nvidia*", "libnvidia*", "cuda*", "datacenter-gpu*", "Ascend*", "ascend*"),
    *("linux-image*", "kernel*", "systemd", "libc6", "glibc", "slurm*", "kubelet", "containerd*", "docker*"),
)
_TABLES: Final = (".toml", ".json")
RESETS_KEPT: Final = 50
EVIDENCE_KEPT: Final = 3


@dataclass(frozen=True, slots=True)
class Item:
    """``name`` is what ``--without`` takes."""

    name: str
    what: str
    sources: Sequence[Source]


def _configuration(node: BundledNode) -> Sequence[Path]:
    return node.config_files


def _site_tables(node: BundledNode) -> Sequence[Path]:
    """Of the folders laid over the shipped one."""
    return [
        each
        for folder in node.site_table_folders
        for each in sorted(folder.glob("*"))
        if each.suffix in _TABLES
    ]


def _newest(folder: Path, most: int) -> list[Path]:
    """The last ones by name; none where the folder cannot be read."""
    try:
        return sorted(folder.iterdir())[-most:]
    except OSError:
        return []


def _resets(node: BundledNode) -> Sequence[Path]:
    return [each for each in _newest(node.record_dir / "resets", RESETS_KEPT) if each.suffix == ".json"]


def _evidence(node: BundledNode) -> Sequence[Path]:
    """Texts of the newest resets; what is packed or binary stays on the node."""
    folders = _newest(node.record_dir / "evidence", EVIDENCE_KEPT)
    return [
        file
        for folder in folders
        for file in _newest(folder, RESETS_KEPT)
        if file.suffix in (".json", ".jsonl", ".txt", ".log")
    ]


ITEMS: Final = (
    Item(
        "status",
        "verdicts, open conditions, holds, actions, sources",
        (OwnCommand("status.txt", ("status", "--all")), OwnCommand("status.json", ("status", "-o", "json"))),
    ),
    Item(
        "devices",
        "each device, and why those that are not well are not",
        (
            OwnCommand("devices.jsonl", ("devices", "-o", "json")),
            MadeText(
                "why.jsonl", "nodeagent why, of each device that is not well", texts.why, {"limit_s": 20.0}
            ),
        ),
    ),
    Item(
        "events",
        "the newest 10,000 events",
        (OwnCommand("events.jsonl", ("events", "-n", "10000", "-o", "json"), since=True, options=_END),),
    ),
    Item(
        "audit",
        "the newest 1,000 calls of operators",
        (OwnCommand("audit.jsonl", ("audit", "-n", "1000", "-o", "json")),),
    ),
    Item(
        "jobs",
        "supervised jobs and claims",
        (OwnCommand("jobs.jsonl", ("job", "list", "--all", "-o", "json")),),
    ),
    Item(
        "consumers",
        "named consumers and their lag",
        (OwnCommand("consumers.jsonl", ("consumers", "-o", "json")),),
    ),
    Item(
        "store",
        "names and sizes of the store's files, and whether it can be read",
        (MadeText("store.txt", "the state folder", texts.store),),
    ),
    Item(
        "resets",
        f"records of the last {RESETS_KEPT} resets, evidence of the last {EVIDENCE_KEPT}",
        (
            FoundFiles("resets", "records of resets", _resets),
            FoundFiles("resets", "evidence of resets", _evidence),
        ),
    ),
    Item(
        "configuration",
        "nodeagent.toml, its drop-ins and the environment; secrets are left out",
        (
            OwnCommand("configuration/values.json", ("config", "show", "-o", "json"), asks=False),
            OwnCommand(
                "configuration/check.json",
                ("config", "check", "-o", "json"),
                asks=False,
                options={"also_ok": (1,)},
            ),
            FoundFiles("configuration", "configuration file", _configuration),
        ),
    ),
    Item(
        "tables",
        "digest and problems of the fault tables, and the tables of the site",
        (
            OwnCommand(
                "tables/check.json", ("tables", "check", "-o", "json"), asks=False, options={"also_ok": (1,)}
            ),
            FoundFiles("tables", "tables of the site", _site_tables),
        ),
    ),
    Item(
        "metrics",
        "one scrape of the daemon's metrics",
        (MadeText("metrics.txt", "metrics.listen", texts.metrics),),
    ),
    Item(
        "process",
        "the daemon's process, its workers, limits, and names in its environment",
        (MadeText("process.txt", "/proc/PID of the daemon", texts.process),),
    ),
    Item(
        "units",
        "state and files of the systemd units of nodeagent",
        (
            OtherProgram(
                "units/status.txt",
                ("systemctl", "status", "--no-pager", "--lines=0", *_UNITS),
                {"also_ok": (3, 4)},
            ),
            OtherProgram("units/files.txt", ("systemctl", "cat", "--no-pager", *_UNITS)),
            OtherProgram("units/properties.txt", ("systemctl", "show", "--no-pager", "nodeagent.service")),
        ),
    ),
    Item(
        "journal",
        "the journal of the units of nodeagent",
        (
            OtherProgram(
                "journal.txt",
                (
                    *("journalctl", "--no-pager", "--quiet", "--output=short-iso-precise", "--lines=20000"),
                    *("--since={since}", *(f"--unit={unit}" for unit in _UNITS)),
                ),
                _END,
            ),
        ),
    ),
    Item(
        "kernel",
        "lines of the kernel log",
        (
            OtherProgram("kernel/dmesg.txt", ("dmesg", "--time-format=iso"), _END),
            OtherProgram(
                "kernel/journal.txt",
                (
                    *("journalctl", "--no-pager", "--quiet", "--output=short-iso-precise", "--lines=20000"),
                    *("--since={since}", "--dmesg", "--boot=all"),
                ),
                _END,
            ),
        ),
    ),
    Item(
        "nvidia",
        "reports of NVIDIA's driver",
        (
            OtherProgram("nvidia/query.txt", ("nvidia-smi", "-q"), _VENDOR),
            OtherProgram("nvidia/topology.txt", ("nvidia-smi", "topo", "-m"), _VENDOR),
            OtherProgram("nvidia/nvlink.txt", ("nvidia-smi", "nvlink", "--status"), _VENDOR),
            FoundFiles(
                "nvidia",
                "driver of NVIDIA",
                these("/proc/driver/nvidia/version", "/proc/driver/nvidia/params"),
            ),
        ),
    ),
    Item(
        "ascend",
        "reports of Ascend's driver",
        (
            OtherProgram("ascend/info.txt", ("npu-smi", "info"), _VENDOR),
            OtherProgram("ascend/list.txt", ("npu-smi", "info", "-l"), _VENDOR),
            OtherProgram("ascend/mapping.txt", ("npu-smi", "info", "-m"), _VENDOR),
            FoundFiles(
                "ascend",
                "driver of Ascend",
                these(
                    "/etc/ascend_install.info",
                    "/usr/local/Ascend/driver/version.info",
                    "/usr/local/Ascend/firmware/version.info",
                ),
            ),
        ),
    ),
    Item(
        "hardware",
        "product and serial numbers of the machine, PCI devices",
        (
            OtherProgram(
                "hardware/dmidecode.txt", ("dmidecode", "-t", "system", "-t", "baseboard", "-t", "chassis")
            ),
            OtherProgram("hardware/pci.txt", ("lspci", "-nnk")),
        ),
    ),
    Item(
        "versions",
        "of nodeagent, its interpreter, the kernel, the distribution, packages",
        (
            OwnCommand("versions/nodeagent.json", ("version", "-o", "json"), asks=False),
            OtherProgram("versions/kernel.txt", ("uname", "-a")),
            FoundFiles("versions", "os-release", these("/usr/lib/os-release")),
            OtherProgram(
                "versions/packages-deb.txt", ("dpkg-query", "--list", *_PACKAGES), {"also_ok": (1,)}
            ),
            OtherProgram("versions/packages-rpm.txt", ("rpm", "-qa", *_PACKAGES)),
        ),
    ),
    Item(
        "machine",
        "memory, disks, load, processes that the kernel holds",
        (
            OtherProgram("machine/disks.txt", ("df", "-hPl")),
            OtherProgram("machine/inodes.txt", ("df", "-iPl")),
            OtherProgram("machine/processes.txt", ("ps", "-eo", "pid,ppid,stat,wchan:32,etimes,rss,comm")),
            FoundFiles(
                "machine",
                "/proc",
                these(
                    *(
                        f"/proc/{name}"
                        for name in ("meminfo", "loadavg", "uptime", "mounts", "cmdline", "devices")
                    ),
                    *(f"/proc/pressure/{name}" for name in ("cpu", "io", "memory")),
                ),
            ),
        ),
    ),
)
"""A new item is a row here; a new part of one is a source of its row."""

NAMES: Final = tuple(item.name for item in ITEMS)
