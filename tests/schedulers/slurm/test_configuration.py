"""What of Slurm's configuration does not fit: values of ``scontrol show config``, of 22.05 and of 26.05."""

from pathlib import Path

import pytest

from nodeagent.schedulers.slurm.configuration import misfits, settings_of
from tests.harness.configuration import ROOT

HOOKS = ROOT / "packaging" / "examples" / "slurm"
FITS = {
    "SLURM_VERSION": "22.05.8",
    "Prolog": str(HOOKS / "prolog"),
    "Epilog": str(HOOKS / "epilog"),
    "PrologFlags": "Alloc",
    "RequeueExit": "75,86",
    "KillWait": "60 sec",
    "AuthInfo": "socket=/run/munge/munge.socket.2,cred_expire=30",
    "JobFileAppend": "1",
    "ProctrackType": "proctrack/cgroup",
    "CgroupJobIdPaths": "yes",
}


def found(**changes: str) -> list[str]:
    lines = "\n".join(f"{key:<24}= {value}" for key, value in {**FITS, **changes}.items())
    shown = f"Configuration data as of 2026-11-28T08:00:00\n{lines}\n"
    return [each.key for each in misfits(settings_of(shown))]


def test_the_lines_of_the_document_fit() -> None:
    assert found() == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("SLURM_VERSION", "20.11.9"),
        ("SLURM_VERSION", "27.05.0"),
        ("Prolog", "(null)"),
        ("Prolog", "/bin/sh"),
        ("Epilog", "/no/such/file"),
        ("PrologFlags", "DeferBatch"),
        ("RequeueExit", "75"),
        ("RequeueExit", "(null)"),
        ("KillWait", "30 sec"),
        ("AuthInfo", "(null)"),
        ("JobFileAppend", "0"),
        ("ProctrackType", "proctrack/linuxproc"),
    ],
)
def test_a_value_that_does_not_fit_is_named(key: str, value: str) -> None:
    assert found(**{key: value}) == [key]


@pytest.mark.parametrize(
    ("key", "value"), [("RequeueExit", "70-90"), ("PrologFlags", "Contain,RunInJob"), ("KillWait", "120 sec")]
)
def test_other_forms_of_a_value_that_fits(key: str, value: str) -> None:
    assert found(**{key: value}) == []


def test_from_26_05_on_the_paths_of_cgroups_matter() -> None:
    assert found(SLURM_VERSION="26.05.2", CgroupJobIdPaths="no") == ["CgroupJobIdPaths"]
    assert found(SLURM_VERSION="26.05.2", CgroupJobIdPaths="yes") == []
    assert found(SLURM_VERSION="25.11.1", CgroupJobIdPaths="no") == []


def test_of_several_prologs_one_has_to_be_ours(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("#!/bin/sh\n")
    shown = "\n".join(f"{key} = {value}" for key, value in FITS.items() if key != "Prolog")
    both = f"{shown}\nProlog[0] = {other}\nProlog[1] = {HOOKS}/pro*\n"
    assert misfits(settings_of(both)) == []


def test_hooks_of_an_earlier_version_are_named(tmp_path: Path) -> None:
    old = tmp_path / "prolog"
    old.write_text("#!/bin/sh\nnodeagent claim\n")
    settings = settings_of("\n".join(f"{key} = {value}" for key, value in {**FITS, "Prolog": old}.items()))
    (only,) = misfits(settings)
    assert only.text.startswith("it is that of an earlier version")


@pytest.mark.parametrize(
    ("plugin", "proctrack", "keys"),
    [
        ("cgroup/v2", "proctrack/cgroup", ["CgroupJobIdPaths"]),
        ("autodetect", "proctrack/cgroup", ["CgroupJobIdPaths"]),
        ("cgroup/v1", "proctrack/cgroup", []),
        ("cgroup/v2", "proctrack/linuxproc", ["ProctrackType"]),
    ],
)
def test_paths_by_sluid_are_named_where_there_are_such_paths(
    plugin: str, proctrack: str, keys: list[str]
) -> None:
    changes = {"SLURM_VERSION": "26.05.4", "CgroupJobIdPaths": "no", "CgroupPlugin": plugin}
    assert found(**changes, ProctrackType=proctrack) == keys


def test_what_26_05_prints_is_read() -> None:
    printed = (ROOT / "tests/fixtures/slurm/config-26.05.4.txt").read_text()
    named = {each.key: each.value for each in misfits(settings_of(printed))}
    assert named == {
        "Prolog": "/etc/slurm/prolog.sh",
        "Epilog": "/etc/slurm/epilog.sh",
        "KillWait": "5 sec",
        "JobFileAppend": "0",
        "CgroupJobIdPaths": "no",
    }
