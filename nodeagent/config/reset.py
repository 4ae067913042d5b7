"""``[reset]`` of nodeagent.toml: the mode of resets, their limits, and what forbids them.

It also checks the do-not-touch file, the kernel's command line and the file system of the state. It resets
nothing.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from msgspec import Meta, Struct, field

from nodeagent.core.catalog.settings import SECOND_NS, ResetSettings
from nodeagent.core.model import ResetMode
from nodeagent.toml.values import FilePath, Word, duration
from nodeagent.vendors import RESETS

RUN_DIRECTORY: Final = "/run/nodeagent/reset_unit"
"""Where the unit of a reset looks."""

UNIT_SOCKET: Final = "/run/nodeagent-reset/socket"
"""The path of nodeagent-reset.socket, which starts the unit."""

KERNEL_WORD: Final = "nodeagent.reset_unit=off"
VOLATILE: Final = frozenset({"tmpfs", "ramfs"})

_ESCAPED: Final = re.compile(rb"\\([0-3][0-7]{2})")
"""Of a character in a name (``seq_escape`` of the kernel)."""

_SLACK_NS: Final = 120 * SECOND_NS
"""The part of a reset's time that the evidence and the pauses between its steps may take."""


Announce = Annotated[int, duration(5 * SECOND_NS, 90 * SECOND_NS, '"5s" to "90s"')]
VerifyTimeout = Annotated[int, duration(60 * SECOND_NS, 180 * SECOND_NS, '"60s" to "180s"')]
Approval = Annotated[int, duration(10 * SECOND_NS, 86_400 * SECOND_NS, '"10s" to "1d"')]
Validity = Annotated[int, duration(60 * SECOND_NS, 604_800 * SECOND_NS, '"1m" to "7d"')]
CoolDown = Annotated[int, duration(0, 3600 * SECOND_NS, '"0s" to "1h"')]
LimitWindow = Annotated[int, duration(600 * SECOND_NS, 604_800 * SECOND_NS, '"10m" to "7d"')]
BugReportTimeout = Annotated[int, duration(0, 900 * SECOND_NS, '"0s" to "15m"')]
HookTimeout = Annotated[int, duration(SECOND_NS, 60 * SECOND_NS, '"1s" to "60s"')]
Grace = Annotated[int, duration(SECOND_NS, 300 * SECOND_NS, '"1s" to "300s"')]
Limit = Annotated[int, Meta(ge=1, le=100, description="a whole number from 1 to 100")]
Commands = Annotated[
    tuple[Annotated[tuple[Word, ...], Meta(min_length=1, max_length=64)], ...],
    Meta(
        max_length=8,
        description='a list of at most 8 commands, each a list of arguments, such as [["logger", "reset"]]',
    ),
]

_VENDORS = " or ".join(f'"{vendor}"' for vendor in RESETS)
if TYPE_CHECKING:
    Vendor = str
else:
    # A type checker cannot know them.
    Vendor = Literal[tuple(RESETS)]


class ResetConfig(Struct, frozen=True, kw_only=True):
    """``[reset]``. ``modes`` is by vendor, ``mode`` for the others.

    ``before`` and ``after`` are commands run around a reset, each for at most ``hook_timeout``. Resets are
    off while the file ``do_not_touch`` is there, or ``kernel_command_line`` holds the ``KERNEL_WORD``.
    ``terminate_holders`` registered: the processes of a job that claimed the faulty chip get SIGTERM, and
    after ``terminate_grace`` SIGKILL, in place of being waited for. ``bug_report_timeout``: how long the
    report for a vendor's support may take that follows a reset that failed, 0: none is made.
    """

    mode: ResetMode = ResetMode.DRY_RUN
    modes: Annotated[
        Mapping[Vendor, ResetMode],
        Meta(description=f"a table that gives {_VENDORS} one of off, dry-run, ask, on"),
    ] = field(default_factory=dict)
    announce_ns: Announce = field(default=30 * SECOND_NS, name="announce")
    verify_timeout_ns: VerifyTimeout = field(default=150 * SECOND_NS, name="verify_timeout")
    approval_ns: Approval = field(default=600 * SECOND_NS, name="approval")
    validity_ns: Validity = field(default=3600 * SECOND_NS, name="validity")
    cool_down_ns: CoolDown = field(default=30 * SECOND_NS, name="cool_down")
    limit: Limit = 3
    node_limit: Limit = 12
    limit_window_ns: LimitWindow = field(default=6 * 3600 * SECOND_NS, name="limit_window")
    trust_process_list: bool = False
    allow_volatile_store: bool = False
    terminate_holders: Literal["never", "registered"] = "never"
    terminate_grace_ns: Grace = field(default=30 * SECOND_NS, name="terminate_grace")
    before: Commands = ()
    after: Commands = ()
    hook_timeout_ns: HookTimeout = field(default=10 * SECOND_NS, name="hook_timeout")
    bug_report_timeout_ns: BugReportTimeout = field(default=300 * SECOND_NS, name="bug_report_timeout")
    run_dir: FilePath = RUN_DIRECTORY
    do_not_touch: FilePath = "/etc/nodeagent/do-not-touch"
    kernel_command_line: FilePath = "/proc/cmdline"

    def settings(self) -> ResetSettings:
        """The settings of the core, as of now: off if resets are forbidden."""
        forbidden = self.forbidden()
        return ResetSettings(
            mode=ResetMode.OFF if forbidden else self.mode,
            modes={} if forbidden else {str(vendor): mode for vendor, mode in self.modes.items()},
            forbidden=forbidden,
            announce_ns=self.announce_ns,
            approval_ns=self.approval_ns,
            validity_ns=self.validity_ns,
            run_ns=self.run_ns,
            verify_ns=self.verify_timeout_ns,
            cool_down_ns=self.cool_down_ns,
            limit=self.limit,
            node_limit=self.node_limit,
            limit_window_ns=self.limit_window_ns,
            trust_process_list=self.trust_process_list,
            terminate_registered=self.terminate_holders == "registered",
        )

    def of_vendor(self, vendor: str) -> ResetMode:
        """As configured; what else forbids resets is not considered."""
        return next((mode for of, mode in self.modes.items() if of == vendor), self.mode)

    @property
    def run_ns(self) -> int:
        """How long one reset may take: its hooks, the end of a job, two waits for the chips, and the rest."""
        hooks_ns = (len(self.before) + len(self.after)) * self.hook_timeout_ns
        ending_ns = 0 if self.terminate_holders == "never" else self.terminate_grace_ns
        return hooks_ns + ending_ns + 2 * self.verify_timeout_ns + _SLACK_NS

    def forbidden(self) -> str:
        """What forbids resets now, "" if nothing does."""
        return forbidden(self.do_not_touch, self.kernel_command_line)

    def check(self, state_dir: str, report: Callable[[str, str], None]) -> None:
        """What no single key can show: ``report(key, reason)``."""
        on = [
            key
            for key, mode in (("mode", self.mode), *((f"modes.{v}", m) for v, m in self.modes.items()))
            if mode is ResetMode.ON
        ]
        if on and not self.allow_volatile_store and (kind := file_system_of(Path(state_dir))) in VOLATILE:
            report(
                on[0],
                f'"on" needs a store that outlives a reboot, and agent.state_dir {state_dir} lies on {kind};'
                " reset.allow_volatile_store = true allows it",
            )


def forbidden(do_not_touch: str, kernel_command_line: str) -> str:
    """What forbids resets now, "" if nothing does. What cannot be looked at forbids them too."""
    try:
        if os.path.lexists(do_not_touch):
            return f"{do_not_touch} is there"
        options = Path(kernel_command_line).read_text(errors="replace").split()
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    return f"the kernel was started with {KERNEL_WORD}" if KERNEL_WORD in options else ""


def file_system_of(path: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str:
    """The type of the file system that the path is on or would be made on, "" where that cannot be read.

    Only blanks and line feeds part what is listed: they are escaped in names, which users choose too.
    """
    try:
        wanted, listed = path.resolve(), mounts.read_bytes()
    except OSError:
        return ""
    best, kind = -1, ""
    for line in filter(None, listed.split(b"\n")):
        fields, _, rest = line.partition(b" - ")
        mounted = Path(
            os.fsdecode(_ESCAPED.sub(lambda found: bytes([int(found[1], 8)]), fields.split(b" ")[4]))
        )
        if wanted.is_relative_to(mounted) and len(mounted.parts) >= best:
            best, kind = len(mounted.parts), os.fsdecode(rest.split(b" ")[0])
    return kind
