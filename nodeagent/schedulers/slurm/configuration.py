"""What of Slurm's configuration does not fit nodeagent, from ``scontrol show config`` and the hooks. Pure but
for the hooks, which are read. Nothing is changed.

The names are those of src/api/config_info.c and src/interfaces/cgroup.c of Slurm, 22.05 to 26.05. From 23.11
on several prologs are listed as ``Prolog[0]``, ``Prolog[1]``.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LEAST_KILL_WAIT_S: Final = 60
STATUSES: Final = frozenset({75, 86})
"""RequeueExit has to have them: docs/jobs.md."""

TRIED: Final = ((22, 5), (26, 5))
"""The oldest and the newest version whose sources or programs were looked at."""

_BY_SLUID_FROM: Final = (26, 5)
_BY_CGROUP: Final = "proctrack/cgroup"
_EXAMPLES: Final = "/usr/share/doc/nodeagent/examples/slurm"
_HAS_RECORDS: Final = "NODEAGENT_RECORDS"
"""In the prolog and the epilog of this version, and in none before."""

_PAIR: Final = re.compile(r"^(\w+)(?:\[\d+\])?\s*=\s*(.*?)\s*$", re.MULTILINE)
_NOT_SET: Final = frozenset({"", "(null)", "None", "n/a"})
_VERSION: Final = re.compile(r"(\d+)\.(\d+)")

Settings = Mapping[str, tuple[str, ...]]
"""The values by their key; () for none that is set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """``file`` is where ``key`` is set, ``text`` what follows from its value, and what to do."""

    file: str
    key: str
    value: str
    text: str


def settings_of(shown: str) -> dict[str, tuple[str, ...]]:
    """``shown`` is what ``scontrol show config`` prints."""
    found: dict[str, tuple[str, ...]] = {}
    for key, value in _PAIR.findall(shown):
        found[key] = found.get(key, ()) + (() if value in _NOT_SET else (value,))
    return found


def misfits(settings: Settings) -> list[Misfit]:
    """In the order of the rows."""
    found = []
    for file, key, look in _ROWS:
        value = ",".join(settings.get(key, ()))
        if text := look(value, settings):
            found.append(Misfit(file=file, key=key, value=value, text=text))
    return found


def _version(settings: Settings) -> tuple[int, int]:
    found = _VERSION.match(",".join(settings.get("SLURM_VERSION", ())))
    return (0, 0) if found is None else (int(found[1]), int(found[2]))


def _of_version(_: str, settings: Settings) -> str:
    oldest, newest = TRIED
    if oldest <= _version(settings) <= newest:
        return ""
    return f"not known to work; {oldest[0]}.{oldest[1]:02} to {newest[0]}.{newest[1]:02} are"


def _of_hook(value: str, _: Settings) -> str:
    if not value:
        return f"no chip is claimed, and no job recorded: copy the hooks of {_EXAMPLES}"
    texts = list(_texts(value.split(",")))
    if any(_HAS_RECORDS in text for text in texts):
        return ""
    if any("nodeagent" in text for text in texts):
        return f"it is that of an earlier version: copy it again from {_EXAMPLES}"
    return f"its text does not name nodeagent: see that it calls the hook of {_EXAMPLES}"


def _texts(patterns: list[str]) -> Iterator[str]:
    """Of all scripts that a value names, which may be a pattern (slurm.conf(5), Prolog)."""
    for pattern in patterns:
        path = Path(pattern)
        for each in sorted(path.parent.glob(path.name)) if path.is_absolute() else ():
            try:
                yield each.read_text(errors="replace")
            except OSError:
                continue


def _of_prolog_flags(value: str, _: Settings) -> str:
    implies = {"alloc", "contain", "runinjob", "x11"}
    if implies & set(value.lower().split(",")):
        return ""
    return "the prolog of a job runs only with its first step: set PrologFlags=Alloc"


def _of_requeue_exit(value: str, _: Settings) -> str:
    numbers = set[int]()
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", value):
        numbers.update(range(int(first), int(last or first) + 1))
    lacking = sorted(STATUSES - numbers)
    return f"jobs that leave with {lacking[0]} are not queued again: set RequeueExit=75,86" if lacking else ""


def _of_kill_wait(value: str, _: Settings) -> str:
    found = re.match(r"\d+", value)
    if found is not None and int(found[0]) >= LEAST_KILL_WAIT_S:
        return ""
    return f"Slurm may kill a job within its grace: set KillWait={LEAST_KILL_WAIT_S}"


def _of_auth_info(value: str, _: Settings) -> str:
    if "cred_expire=" in value:
        return ""
    return "a job that is queued again waits for two minutes: add cred_expire=30"


def _of_append(value: str, _: Settings) -> str:
    if value != "0":
        return ""
    return "a job that is queued again empties its output: set JobFileAppend=1, or use --open-mode=append"


def _of_proctrack(value: str, _: Settings) -> str:
    if value == _BY_CGROUP:
        return ""
    return "a job is known only while the prolog's record is there: proctrack/cgroup is safer"


def _of_paths(value: str, settings: Settings) -> str:
    """Version 1 of cgroups has the number in its paths, and another ProctrackType has none."""
    if _version(settings) < _BY_SLUID_FROM or value.lower() == "yes":
        return ""
    if settings.get("CgroupPlugin") == ("cgroup/v1",) or settings.get("ProctrackType") != (_BY_CGROUP,):
        return ""
    return "a job has its number only by the prolog's record: CgroupJobIdPaths=yes is safer (26.05.2)"


_SLURM_CONF, _CGROUP_CONF = "slurm.conf", "cgroup.conf"
_ROWS: Final[tuple[tuple[str, str, Callable[[str, Settings], str]], ...]] = (
    ("scontrol", "SLURM_VERSION", _of_version),
    (_SLURM_CONF, "Prolog", _of_hook),
    (_SLURM_CONF, "Epilog", _of_hook),
    (_SLURM_CONF, "PrologFlags", _of_prolog_flags),
    (_SLURM_CONF, "RequeueExit", _of_requeue_exit),
    (_SLURM_CONF, "KillWait", _of_kill_wait),
    (_SLURM_CONF, "AuthInfo", _of_auth_info),
    (_SLURM_CONF, "JobFileAppend", _of_append),
    (_SLURM_CONF, "ProctrackType", _of_proctrack),
    (_CGROUP_CONF, "CgroupJobIdPaths", _of_paths),
)
