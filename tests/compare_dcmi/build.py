"""Builds the vendor's libdcmi from a copy of its driver's source, unchanged, over ``below.c``.

Of the source it takes ``src/custom/dev_prod/user/dcmi``, ``dsmi_fault_event.c`` and headers; it changes
nothing there and copies nothing into the project. What these call and ``below.c`` lacks answers that it is
not supported.
"""

import platform
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from nodeagent.emulator.build import COMMON, SOURCES

HERE: Final = Path(__file__).parent
EMULATOR: Final = SOURCES / COMMON
DCMI: Final = Path("src/custom/dev_prod/user/dcmi")
INCLUDED: Final = (
    "src/ascend_hal/msnpureport/inc/libc_sec",
    "pkg_inc",
    "src/custom/include",
    *(f"{DCMI}/{part}/inc" for part in ("dcmi_inner", "dcmi_init", "dcmi_interface")),
)
KERNEL: Final = "src/sdk_driver/inc"
COMMANDS: Final = "src/sdk_driver/dms/command/ioctl"
EVENTS: Final = "src/ascend_hal/dmc/dsmi/dsmi_common/fault/dsmi_fault_event.c"
"""Of the layer below libdcmi the one file that is built as it is: subscribing to events, and reading them."""
EVENTS_INCLUDED: Final = (
    "src/ascend_hal/dmc/device_monitor/include",
    "src/ascend_hal/dmc/device_monitor/lib/include",
    "src/ascend_hal/inc",
    "src/ascend_hal/inc/mmpa",
    "src/ascend_hal/dmc/dsmi/include",
    "src/ascend_hal/dmc/dsmi/dc",
    "src/ascend_hal/dms/fault",
    KERNEL,
    COMMANDS,
)
OWN: Final = ("below", "below_bmc", "below_events", "traced", "texts")
REPLACED: Final = ("system", "popen", "pclose", "sleep", "realpath")
"""Functions of the C library that touch the machine: ``below_...`` is called in their place."""
WEAKENED: Final = (
    "dcmi_is_in_docker",
    "dcmi_is_in_virtual_machine",
    "dcmi_log_fun",
    "dcmi_ipmi_get_npu_outband_channel_state",
    "dcmi_ipmi_get_npu_fru_id",
    "dcmi_ipmi_get_cpld_version",
    "dcmi_ipmi_reset_npu_910_93",
)
"""Functions of libdcmi's own that find out about the machine, write to it, or ask its BMC: ``below.c`` and
``below_bmc.c`` have others."""
TRACED: Final = (
    "dcmi_set_device_reset",
    "dcmi_pre_reset_soc",
    "dcmi_rescan_soc",
    "dcmi_get_device_resource_info",
    "dcmi_get_device_boot_status",
    "dcmi_get_device_errorcode_v2",
    "dcmiv2_reset_device",
    "dcmiv2_pre_reset_device",
    "dcmiv2_rescan_device",
    "dcmiv2_get_device_proc_mem_info",
    "dcmiv2_get_device_boot_status",
    "dcmiv2_get_device_error_code_list",
)
"""``traced.c`` has functions of these names, and calls the vendor's as ``vendor_...``."""
BELOW: Final = re.compile(r"_?(?:dsmi|dms|drv|hal|dev|dmanage)\w*")


class BuildFailed(RuntimeError):
    """The source is not what is expected, or the compiler refused; its own words are the text."""


def build(source: Path, folder: Path) -> Path:
    """The library, in ``folder``. Raises ``BuildFailed``."""
    theirs = sorted((source / DCMI).glob("*/src/*.c"))
    if not theirs:
        raise BuildFailed(f"{source / DCMI} has no sources: a copy of github hicann/driver is wanted there")
    included = [f"-I{source / path}" for path in INCLUDED]
    objects = [_their_object(path, included, folder) for path in theirs]
    objects.append(_their_events(source, included, folder))
    for name in OWN:
        more = [f"-I{EMULATOR}", f"-I{source / COMMANDS}", f"-I{source / KERNEL}"]
        _run("cc", "-g", "-O1", "-Wall", "-fPIC", *included, *more, *_own(folder, name))
        objects.append(folder / f"{name}.o")
    objects += _emulators(folder)
    objects.append(_not_supported(objects, folder))
    library = folder / "libdcmi-vendor.so"
    linked = ("-shared", "-Wl,-z,defs", "-o", str(library), *map(str, objects))
    _run("cc", *linked, "-lpthread", "-lm", "-ldl")
    return library


def _their_object(path: Path, included: Sequence[str], folder: Path) -> Path:
    made = folder / f"their_{path.stem}.o"
    machine = "-DX86" if platform.machine() == "x86_64" else "-DARM"
    replaced = [f"-D{name}=below_{name}" for name in REPLACED]
    options = ("-g", "-O1", "-w", "-fPIC", "-fno-strict-aliasing", machine, '-DDCMI_VERSION="compared"')
    _run("cc", *options, *replaced, *included, "-c", str(path), "-o", str(made))
    weakened = (f"--weaken-symbol={name}" for name in WEAKENED)
    _run("objcopy", *weakened, *(f"--redefine-sym={name}=vendor_{name}" for name in TRACED), str(made))
    return made


def _their_events(source: Path, included: Sequence[str], folder: Path) -> Path:
    made = folder / "their_events.o"
    more = [f"-I{source / path}" for path in EVENTS_INCLUDED]
    options = ("-g", "-O1", "-w", "-fPIC", "-DDRV_HOST", "-DCFG_FEATURE_FAULT_EVENT", "-include")
    _run("cc", *options, str(HERE / "quiet.h"), *included, *more, "-c", str(source / EVENTS), "-o", str(made))
    return made


def _own(folder: Path, name: str) -> tuple[str, ...]:
    return ("-c", str(HERE / f"{name}.c"), "-o", str(folder / f"{name}.o"))


def _emulators(folder: Path) -> list[Path]:
    """What maps the state file, hidden as in the emulator's own library."""
    made = []
    for name in ("shared", "override", "under_way"):
        made.append(folder / f"emulator_{name}.o")
        options = ("-std=c11", "-g", "-O1", "-fPIC", "-fvisibility=hidden", "-pthread")
        _run("cc", *options, "-c", str(EMULATOR / f"{name}.c"), "-o", str(made[-1]))
    return made


def _not_supported(objects: Sequence[Path], folder: Path) -> Path:
    """A function for each that is missing."""
    part = folder / "part.so"
    _run("cc", "-shared", "-o", str(part), *map(str, objects))
    listed = _run("nm", "-D", "--undefined-only", str(part))
    names = [name for name in (line.split()[-1] for line in listed.splitlines()) if BELOW.fullmatch(name)]
    source, made = folder / "missing.c", folder / "missing.o"
    source.write_text(
        "int below_not_supported(const char *function);\n"
        + "".join(f'int {name}(void) {{ return below_not_supported("{name}"); }}\n' for name in names)
    )
    _run("cc", "-w", "-fPIC", "-c", str(source), "-o", str(made))
    return made


def _run(*command: str) -> str:
    try:
        made = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise BuildFailed(f"{command[0]} is not installed") from None
    if made.returncode != 0:
        raise BuildFailed(f"{' '.join(command)}\n{made.stderr}")
    return made.stdout
