"""What somebody has put where a file of a job is to be: no supervisor waits for it, or reads on for ever."""

import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from nodeagent.job.shell import files, state_folder
from nodeagent.job.shell.files import NotRegularError
from nodeagent.job.shell.journal import MAX_BYTES, Journal, JournalError, JournalOwner
from nodeagent.job.step.folder import StepFolder
from tests.job.shell.supervised import Place


def fifo(path: Path) -> None:
    os.mkfifo(path)


def link_to_zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link_to_itself(path: Path) -> None:
    path.symlink_to(path)


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        here = Path.cwd()
        os.chdir(path.parent)  # its own path may be too long for a socket
        bound.bind(path.name)
        os.chdir(here)


def folder(path: Path) -> None:
    path.mkdir()


def endless(path: Path) -> None:
    """A hole takes no space."""
    with path.open("wb") as opened:
        opened.truncate(1 << 40)


KINDS = [
    (fifo, "it is a FIFO, and a regular file is needed"),
    (link_to_zero, "it is a link, and a regular file is needed"),
    (link_to_itself, "it is a link, and a regular file is needed"),
    (unix_socket, "it is a socket, and a regular file is needed"),
    (folder, "Is a directory"),
]
MAKES = pytest.mark.parametrize(("make", "why"), KINDS, ids=[make.__name__ for make, _ in KINDS])
Make = Callable[[Path], None]


@MAKES
def test_what_is_no_regular_file_is_not_read(tmp_path: Path, make: Make, why: str) -> None:
    make(tmp_path / "file")
    for reads in (files.read, files.read_start):
        with pytest.raises(NotRegularError) as refused:
            reads(tmp_path / "file", 100)
        assert (refused.value.strerror, refused.value.filename) == (why, str(tmp_path / "file"))


@MAKES
@pytest.mark.parametrize(
    "flags", [os.O_WRONLY | os.O_APPEND | os.O_CREAT, os.O_WRONLY, os.O_RDWR | os.O_CREAT]
)
def test_what_is_no_regular_file_is_not_written(tmp_path: Path, make: Make, why: str, flags: int) -> None:
    make(tmp_path / "file")
    with pytest.raises(OSError, match=why):
        files.open_own(tmp_path / "file", flags)


def test_a_file_is_read_up_to_a_size(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    assert (files.read(file, 5), files.read_start(file, 2)) == (b"12345", b"12")
    with pytest.raises(NotRegularError, match="it has more than 4 bytes"):
        files.read(file, 4)


def test_a_file_that_the_user_names_may_be_a_link(tmp_path: Path) -> None:
    """As the kubelet makes them, and not to what has no end."""
    (tmp_path / "data").write_text("a=b")
    (tmp_path / "named").symlink_to("data")
    assert files.read(tmp_path / "named", 100, is_own=False) == b"a=b"
    link_to_zero(tmp_path / "zero")
    with pytest.raises(NotRegularError, match="it is a device, and a regular file is needed"):
        files.read(tmp_path / "zero", 100, is_own=False)


def test_one_that_is_not_there_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        files.read(tmp_path / "file", 100)


@pytest.mark.parametrize("make", [fifo, link_to_zero])
def test_what_lies_where_a_file_is_made_anew_is_not_written_to(tmp_path: Path, make: Make) -> None:
    precious = tmp_path / "precious"
    precious.write_text("of somebody")
    (tmp_path / "linked.new").symlink_to(precious)
    make(tmp_path / "file.new")
    for name in ("linked", "file"):
        files.write(tmp_path / f"{name}.json", name)
        assert (tmp_path / f"{name}.json").read_text() == name
    assert precious.read_text() == "of somebody"


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("of somebody")
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "lock").symlink_to(precious)
    with pytest.raises(state_folder.StateFolderError, match="it is a link, and a regular file is needed"):
        state_folder.open_alone(tmp_path / "state")
    assert precious.read_text() == "of somebody"


@pytest.mark.parametrize(
    "flags", [os.O_RDWR | os.O_CREAT, os.O_WRONLY | os.O_APPEND, os.O_WRONLY | os.O_CREAT | os.O_TRUNC]
)
def test_another_name_of_a_file_is_not_written_to(tmp_path: Path, flags: int) -> None:
    """Whoever may write in a shared folder can give a file of somebody else a name there (link(2))."""
    (tmp_path / "keys").write_text("mine")
    (tmp_path / "file").hardlink_to(tmp_path / "keys")
    with pytest.raises(NotRegularError, match="it is a hard link, and a file with one name is needed"):
        files.open_own(tmp_path / "file", flags)
    with pytest.raises(NotRegularError, match="it is a hard link"):
        files.read(tmp_path / "file", 100)
    assert (tmp_path / "keys").read_text() == "mine"
    assert files.read(tmp_path / "file", 100, is_own=False) == b"mine"


@pytest.mark.parametrize("name", ["lock", "run_state.json", "journal.jsonl"])
def test_a_state_with_another_name_of_a_file_leaves_that_alone(
    place: Place, tmp_path: Path, name: str
) -> None:
    (tmp_path / "state").mkdir()
    keys = tmp_path / "keys"
    keys.write_text("mine\n")
    (tmp_path / "state" / name).hardlink_to(keys)
    place.run("true", options=("--state", str(tmp_path / "state")))
    assert keys.read_text() == "mine\n"


def test_a_folder_of_a_run_that_is_a_link_is_not_used(tmp_path: Path) -> None:
    opened = state_folder.open_alone(tmp_path / "state")
    (tmp_path / "state" / "run-1").symlink_to(tmp_path)
    with pytest.raises(NotRegularError, match="it is a link, and a folder is needed"):
        opened.run(1)
    opened.close()


def test_a_journal_without_end_is_refused(tmp_path: Path) -> None:
    endless(tmp_path / "journal.jsonl")
    with pytest.raises(JournalError, match=f"journal.jsonl: it has more than {MAX_BYTES} bytes"):
        Journal(tmp_path / "journal.jsonl", JournalOwner("boot", "job", ("true",)))


# ---------------------------------------------------------------------- the supervisor itself

REFUSED = "it is a FIFO, and a regular file is needed"


@pytest.mark.parametrize(
    ("name", "status", "said"),
    [
        ("journal.jsonl", 3, "a supervisor that is started again will not know of this run"),
        ("run_state.json", 3, "counting begins from zero"),
        ("lock", 78, "name a folder of this user alone"),
    ],
)
@pytest.mark.parametrize("make", [fifo, link_to_zero])
def test_the_command_starts_at_once_or_is_refused_with_the_name_of_the_file(
    place: Place, tmp_path: Path, name: str, status: int, said: str, make: Make
) -> None:
    (tmp_path / "state").mkdir()
    make(tmp_path / "state" / name)
    done = place.run("sh", "-c", "exit 3", options=("--state", str(tmp_path / "state")))
    stderr = done.stderr.decode()
    assert done.returncode == status
    assert f"{tmp_path}/state/{name}: it is " in stderr
    assert f"and a regular file is needed; {said}" in stderr


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (("--progress", "{}"), 3, "--progress: {}: " + REFUSED + "; no progress is seen"),
        (("--policy", "{}"), 78, "--policy: {}: " + REFUSED),
        (("--annotations", "{}"), 78, "--annotations: {}: " + REFUSED),
    ],
)
def test_a_fifo_that_the_user_names_holds_nothing_up(
    place: Place, tmp_path: Path, options: Sequence[str], status: int, said: str
) -> None:
    fifo(tmp_path / "pipe")
    named = [each.format(tmp_path / "pipe") for each in options]
    done = place.run("sh", "-c", "exit 3", options=named)
    assert done.returncode == status
    assert said.format(tmp_path / "pipe") in done.stderr.decode()


@MAKES
def test_a_file_of_a_step_s_folder_counts_as_if_it_were_not_there(
    tmp_path: Path, make: Make, why: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Another node, or another user, has put it there."""
    step = StepFolder(tmp_path)
    (tmp_path / "run-1").mkdir()
    for name in ("plan.json", "node-n1.json"):
        make(tmp_path / "run-1" / name)
    assert (step.plan(1), step.outcome(1, "n1")) == (None, None)
    said = capfd.readouterr().err.splitlines()
    assert said == [
        f"nodeagent-job: {tmp_path}/run-1/{name}: {why}; it counts as if it were not there"
        for name in ("plan.json", "node-n1.json")
    ]
