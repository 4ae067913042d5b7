"""Where a supervisor keeps what outlives it, and what becomes of a job where that cannot be."""

import os
from pathlib import Path

import pytest

from nodeagent.job.shell.journal import Journal, JournalOwner
from nodeagent.job.shell.state_folder import StateFolderError, key_of, open_default, open_given
from tests.job.shell.supervised import Place

COMMAND = ("python", "train.py")


@pytest.mark.parametrize(
    ("job", "environment", "key"),
    [
        ("llama", {}, "llama"),
        ("a/b", {}, "a_b-07f4401c"),
        ("..", {}, "__-9608161c"),
        ("", {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_PROCID": "3"}, "slurm-7-0-3"),
        ("", {"SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": "2"}, "slurm-7-2"),
    ],
)
def test_key_of_a_job_is_one_name_of_a_folder(job: str, environment: dict[str, str], key: str) -> None:
    assert key_of(job, COMMAND, environment) == key


def test_commands_and_directories_are_told_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    keys = [key_of("", COMMAND, {}), key_of("", ("python", "train.py "), {})]
    monkeypatch.chdir(tmp_path)
    keys.append(key_of("", COMMAND, {}))

    assert len(set(keys)) == 3


def test_second_supervisor_of_a_job_has_the_next_folder(tmp_path: Path) -> None:
    environment = {"TMPDIR": str(tmp_path)}
    first = open_default("llama", COMMAND, environment)
    second = open_default("llama", COMMAND, environment)
    names = [first.folder.name, second.folder.name]
    first.close()
    third = open_default("llama", COMMAND, environment)

    assert [*names, third.folder.name] == ["llama", "llama+1", "llama"]
    second.close()
    third.close()


def test_folders_of_one_name_in_two_containers_have_a_socket_each(tmp_path: Path) -> None:
    """Both are ``/state`` there, and /tmp is one: as the second, or the first moved aside."""
    environment = {"TMPDIR": str(tmp_path)}
    folder = tmp_path / "state"
    first = open_given(folder, {})
    path = first.beat_path(environment)
    folder.rename(tmp_path / "aside")
    second = open_given(folder, {})

    assert second.beat_path(environment) != path
    first.close()
    second.close()


def test_each_task_of_a_job_has_a_folder_in_a_shared_one(tmp_path: Path) -> None:
    tasks = [
        open_given(tmp_path, {"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": str(number)})
        for number in range(2)
    ]

    assert [each.folder.name for each in tasks] == ["task-0", "task-1"]
    for each in tasks:
        each.close()


@pytest.mark.root
def test_folder_that_somebody_else_has_made_is_not_used(tmp_path: Path) -> None:
    """In /tmp anybody may make it first."""
    theirs = tmp_path / f"nodeagent-job-{os.getuid()}"
    theirs.mkdir()
    os.chown(theirs, 12345, 12345)

    with pytest.raises(StateFolderError, match="not a folder of this user that only this user may write"):
        open_default("llama", COMMAND, {"TMPDIR": str(tmp_path)})


def test_folder_of_a_link_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"nodeagent-job-{os.getuid()}").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(StateFolderError, match="not a folder of this user"):
        open_default("llama", COMMAND, {"TMPDIR": str(tmp_path)})


def test_command_runs_where_nothing_can_be_kept(place: Place) -> None:
    done = place.run("sh", "-c", "exit 3", env={"TMPDIR": "/proc"})

    assert done.returncode == 3
    assert done.stderr.decode().startswith(f"nodeagent-job: /proc/nodeagent-job-{os.getuid()}: ")


def test_folder_that_was_asked_for_is_needed(place: Place) -> None:
    done = place.run("true", options=("--state", "/proc/state"))

    assert done.returncode == 78
    assert done.stderr.decode().startswith("nodeagent-job: --state: /proc/state: ")


def test_job_goes_on_without_a_journal(place: Place) -> None:
    """A full disk would look the same."""
    (place.state / "journal.jsonl").mkdir(parents=True)

    done = place.run("sh", "-c", "exit 3", options=("--state", str(place.state)))

    assert done.returncode == 3
    assert done.stderr.decode() == (
        f"nodeagent-job: {place.state}/journal.jsonl: Is a directory;"
        " a supervisor that is started again will not know of this run\n"
    )


OWNER = JournalOwner("boot", "job", COMMAND)


def test_journal_gives_its_lines_back_to_the_same_owner(tmp_path: Path) -> None:
    first = Journal(tmp_path / "journal.jsonl", OWNER)
    first.append(b"one\n")
    first.append(b"two\n")

    assert first.earlier == ()
    assert Journal(tmp_path / "journal.jsonl", OWNER).earlier == (b"one\n", b"two\n")


@pytest.mark.parametrize(
    "other",
    [
        JournalOwner("boot 2", "job", COMMAND),
        JournalOwner("boot", "job 2", COMMAND),
        JournalOwner("boot", "job", ("true",)),
    ],
)
def test_journal_of_another_boot_job_or_command_is_moved_aside(tmp_path: Path, other: JournalOwner) -> None:
    Journal(tmp_path / "journal.jsonl", OWNER).append(b"one\n")

    assert Journal(tmp_path / "journal.jsonl", other).earlier == ()
    assert (tmp_path / "journal.1.jsonl").read_text().endswith("one\n")


def test_torn_end_is_cut_off_before_more_is_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl", OWNER)
    journal.append(b"one\n")
    with journal.path.open("ab") as opened:
        opened.write(b"tw")

    again = Journal(tmp_path / "journal.jsonl", OWNER)
    again.append(b"three\n")

    assert again.earlier == (b"one\n",)
    assert journal.path.read_bytes().splitlines()[1:] == [b"one", b"three"]


def test_job_that_has_left_leaves_no_journal_for_the_next(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl", OWNER)
    journal.append(b"one\n")
    journal.finish()

    assert Journal(tmp_path / "journal.jsonl", OWNER).earlier == ()
