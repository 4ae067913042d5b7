"""STATE: the folder where a supervisor keeps what outlives it, and the lock that makes it the only one there.

    lock              held while a supervisor lives
    journal.jsonl     what was given to the session (``journal.py``)
    samples.jsonl     what was measured last; samples.1.jsonl is the hour before
    run-N/            of each run: the error file of torch, and the evidence of a hang
    run_state.json    counts that outlive the placement

Without ``--state`` it lies below TMPDIR or /tmp, in a folder of the user, by the job's key. Not below
XDG_RUNTIME_DIR: that is removed when the user's last login session ends (pam_systemd(8)), while the job goes
on, and it is memory. The counts across placements need a ``--state`` that the next node sees, too.
"""

import fcntl
import os
import stat
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from nodeagent.job.shell import files

MAX_ALIKE: Final = 64
"""So many supervisors with one key on one node have a folder of their own each."""

_LOCK: Final = "lock"
_MAX_LOCK_BYTES: Final = 200
_MAX_SOCKET_PATH: Final = 107
"""unix(7): 108 bytes with the zero."""


class StateFolderError(Exception):
    """The folder cannot be used. The message gives the reason and what to do."""


class StateFolder:
    """A folder that is this process's alone until it ends."""

    def __init__(self, folder: Path, lock: int, *, is_given: bool, counts: Path | None = None) -> None:
        """``counts`` None: they lie in the folder."""
        self.folder = folder
        self.counts = counts or folder / "run_state.json"
        self.is_given = is_given
        """The folder was given by ``--state``: others look into it."""

        self._lock = lock

    @property
    def journal(self) -> Path:
        return self.folder / "journal.jsonl"

    def run(self, number: int) -> Path:
        """The folder of that run; made where it is not there. Raises ``OSError``."""
        folder = self.folder / f"run-{number}"
        files.make_folder(folder)
        return folder

    def put_counts(self, text: str) -> None:
        """Whole or not at all, also where the power fails. Raises ``OSError``."""
        files.write(self.counts, text)

    def move_counts_aside(self) -> Path:
        """They cannot be read. Raises ``OSError``."""
        aside = self.counts.with_suffix(".torn.json")
        self.counts.replace(aside)
        return aside

    def beat_path(self, environment: Mapping[str, str]) -> str:
        """The path of a socket: on this node, and short. The same one for each supervisor of this STATE, and
        for no other: containers that share /tmp may have folders of one name.
        """
        found = self.folder.stat()
        name = f"beat-{_digest(f'{found.st_dev}:{found.st_ino}')}"
        path = str(_own_folder(environment) / name)
        return path if len(os.fsencode(path)) <= _MAX_SOCKET_PATH else str(_own_folder({}) / name)

    def errors_path(self, environment: Mapping[str, str]) -> Path:
        """The folder of what the programs of a run note of their errors: on this node, as the socket."""
        found = self.folder.stat()
        return _own_folder(environment) / f"errors-{_digest(f'{found.st_dev}:{found.st_ino}')}"

    def _remove(self) -> None:
        """As ``shutil.rmtree``, which takes longer to import than a short command to run."""
        for each in sorted(self.folder.rglob("*"), reverse=True):
            if each.is_dir() and not each.is_symlink():
                each.rmdir()
            else:
                each.unlink()
        self.folder.rmdir()

    def close(self) -> None:
        """The job has left. A folder that was not asked for is kept only for its evidence."""
        try:
            if not self.is_given and not any(self.folder.glob("run-*/hang/*")):
                self._remove()
        finally:
            os.close(self._lock)


def open_given(folder: Path, environment: Mapping[str, str]) -> StateFolder:
    """That of ``--state``; of a job with several tasks each has a folder in it. Raises ``StateError``."""
    return open_alone(folder / task_of(environment))


def open_alone(folder: Path, counts: Path | None = None) -> StateFolder:
    """That folder itself, however many tasks the job has. Raises ``StateFolderError``."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = _locked(folder)
    except files.NotRegularError as error:
        wanted = "name a folder of this user alone"
        raise StateFolderError(f"{error.filename}: {error.strerror}; {wanted}") from error
    except OSError as error:
        raise StateFolderError(f"{folder}: {error.strerror}; name a folder that can be written to") from error
    if lock is None:
        raise StateFolderError(
            f"{folder}: supervisor {_owner(folder)} uses it; end that one, or name another folder"
        )
    return StateFolder(folder, lock, is_given=True, counts=counts)


def open_default(key: str, command: Sequence[str], environment: Mapping[str, str]) -> StateFolder:
    """Open the folder of the job's key; if a supervisor uses it, the next one. Raises ``StateError``."""
    name = key_of(key, command, environment)
    try:
        home = _own_folder(environment)
        for number in range(MAX_ALIKE):
            folder = home / (f"{name}+{number}" if number else name)
            folder.mkdir(mode=0o700, exist_ok=True)
            lock = _locked(folder)
            if lock is not None:
                return StateFolder(folder, lock, is_given=False)
    except OSError as error:
        raise StateFolderError(
            f"{error.filename}: {error.strerror}; name a folder of your own with --state"
        ) from error
    raise StateFolderError(
        f"{home / name}: {MAX_ALIKE} supervisors run with this key; give each its own --job"
    )


def key_of(key: str, command: Sequence[str], environment: Mapping[str, str]) -> str:
    """The key of the job: from ``--job``, else Slurm's variables, else the working directory and the command.
    One name of a folder; a placement has its own, so that nothing is taken over from the one before.
    """
    if key:
        parts = [_plain(key)] if _plain(key) == key else [_plain(key), _digest(key)]
    elif job := environment.get("SLURM_JOB_ID"):
        parts = ["slurm", _plain(job)]
    else:
        parts = ["command", _digest("\0".join((_here(), *command)))]
    for name in ("SLURM_STEP_ID", "SLURM_PROCID", "SLURM_RESTART_COUNT"):
        if value := environment.get(name):
            parts.append(_plain(value))
    return "-".join(parts)


def _here() -> str:
    try:
        return os.getcwd()  # noqa: PTH109
    except FileNotFoundError:  # somebody has removed it: a command runs there all the same
        return ""


def _own_folder(environment: Mapping[str, str]) -> Path:
    """The user's own. Raises ``OSError``, also where somebody else has made it."""
    folder = Path(environment.get("TMPDIR") or "/tmp") / f"nodeagent-job-{os.getuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise PermissionError(1, "it is not a folder of this user that only this user may write", str(folder))
    return folder


def _locked(folder: Path) -> int | None:
    """The open lock; None where another one holds it. It ends with the process, however that ends."""
    opened = files.open_own(folder / _LOCK, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _is_still_there(opened, folder):
            os.close(opened)
            return _locked(folder)
    except BlockingIOError:
        os.close(opened)
        return None
    except BaseException:
        os.close(opened)
        raise
    os.ftruncate(opened, 0)
    os.write(opened, f"{os.getpid()} on {os.uname().nodename}\n".encode())
    return opened


def _is_still_there(lock: int, folder: Path) -> bool:
    """Its owner may have removed it between the opening and the lock."""
    try:
        return os.path.samestat(os.fstat(lock), (folder / _LOCK).lstat())
    except FileNotFoundError:
        return False


def _owner(folder: Path) -> str:
    text = files.read_start(folder / _LOCK, _MAX_LOCK_BYTES).decode(errors="replace")
    return text.strip() or "unknown"


def task_of(environment: Mapping[str, str]) -> str:
    """The name of this task among the several of its job; "" where the job has one alone."""
    return f"task-{environment.get('SLURM_PROCID', '0')}" if _tasks(environment) > 1 else ""


def _tasks(environment: Mapping[str, str]) -> int:
    given = environment.get("SLURM_STEP_NUM_TASKS") or environment.get("SLURM_NTASKS") or ""
    return int(given) if given.isdigit() else 1


def _plain(text: str) -> str:
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._") else "_" for c in text)[:80]
    return plain if plain.strip(".") else plain.replace(".", "_")


def _digest(text: str) -> str:
    """Short, and in no import that costs milliseconds. Two jobs with the same digest differ in their
    journals.
    """
    return f"{zlib.crc32(os.fsencode(text)):08x}"
