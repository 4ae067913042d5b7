"""The report of ./dev update: what changed in the locks, and what a person has to look at."""

from email.message import Message
from pathlib import Path

import pytest

from dependency_report import (
    Change,
    Described,
    Locked,
    compare,
    described_by,
    read_locks,
    report,
    reviewed_versions,
)
from tests.documents import ROOT

OLD, NEW = Locked("1.0"), Locked("2.0")


def test_the_locks_of_the_project_are_read() -> None:
    locks = read_locks(ROOT / "packaging")
    assert {"development.lock", "runtime.lock", "buf/package-lock.json"} <= locks.keys()
    assert all(locks.values())
    assert {"click", "grpcio", "systemd-python"} <= locks["runtime.lock"].keys()
    assert locks["buf/package-lock.json"]["@bufbuild/buf-linux-x64"].license == "Apache-2.0"


def test_a_version_that_differs_by_platform_is_one_package(tmp_path: Path) -> None:
    (tmp_path / "a.lock").write_text(
        "Zope.Interface==1.0 ; python_version < '3.12' \\\n    --hash=sha256:0\n"
        "zope-interface==2.0 ; python_version >= '3.12' \\\n    --hash=sha256:1\n"
    )
    assert read_locks(tmp_path) == {"a.lock": {"zope-interface": Locked("1.0, 2.0")}}


def test_a_package_that_several_locks_name_is_one_change() -> None:
    before = {"a.lock": {"x": OLD, "y": OLD}, "b.lock": {"x": OLD}}
    after = {"a.lock": {"x": NEW, "y": OLD}, "b.lock": {"x": NEW, "z": NEW}}
    assert compare(before, after) == [
        Change("x", OLD, NEW, ("a.lock", "b.lock")),
        Change("z", None, NEW, ("b.lock",)),
    ]


def test_a_lock_or_package_that_is_gone_is_a_change() -> None:
    assert compare({"a.lock": {"x": OLD}}, {}) == [Change("x", OLD, None, ("a.lock",))]


@pytest.mark.parametrize(
    ("change", "described", "notes"),
    [
        (Change("x", OLD, NEW, ("a.lock",)), ("MIT", "MIT"), ["changes: https://x.example/changes"]),
        (
            Change("x", OLD, NEW, ("a.lock",)),
            ("MIT", "GPL-3.0-only"),
            ["changes: https://x.example/changes", "license: MIT -> GPL-3.0-only"],
        ),
        (
            Change("x", None, NEW, ("a.lock",)),
            ("", "MIT"),
            ["changes: https://x.example/changes", "license: MIT"],
        ),
        (Change("x", OLD, None, ("a.lock",)), ("MIT", ""), []),
    ],
)
def test_versions_changes_and_licences_are_reported(
    change: Change, described: tuple[str, str], notes: list[str]
) -> None:
    texts = {
        ("x", "1.0"): Described(described[0], ""),
        ("x", "2.0"): Described(described[1], "https://x.example/changes"),
    }
    old, new = (each.version if each else "-" for each in (change.old, change.new))
    assert report([change], texts, {}) == [
        "1 changes:",
        f"  x {old} -> {new}  (a.lock)",
        *(f"      {note}" for note in notes),
    ]


def test_where_no_changes_are_named_the_home_page_is() -> None:
    change = Change("x", OLD, NEW, ("a.lock",))
    texts = {("x", "2.0"): Described("MIT", "", "https://x.example")}
    assert "      home: https://x.example" in report([change], texts, {})


def test_a_licence_of_npm_is_the_one_in_the_lock() -> None:
    change = Change("x", Locked("1.0", "MIT"), Locked("2.0", "BSD-3-Clause"), ("buf/package-lock.json",))
    assert report([change], {}, {})[2:] == ["      license: MIT -> BSD-3-Clause"]


def test_a_package_whose_parts_are_to_be_reviewed_is_named() -> None:
    (note,) = report([Change("grpcio", OLD, NEW, ("a.lock",))], {}, {"grpcio": "1.0"})[2:]
    assert note.strip().startswith("reviewed for 1.0: look up what it compiles in")
    assert "grpcio" in reviewed_versions(ROOT / "packaging" / "describe" / "components.toml")


def test_without_a_change_that_is_reported() -> None:
    assert report([], {}, {}) == ["nothing changed: all locks have the newest versions"]


def test_what_metadata_says_is_taken_by_the_newest_field_first() -> None:
    metadata = Message()
    metadata["License-Expression"] = "BSD-3-Clause"
    metadata["License"] = "see the file"
    metadata["Project-URL"] = "Source, https://x.example/source"
    metadata["Project-URL"] = "Changelog, https://x.example/changes"
    assert described_by(metadata) == Described(
        "BSD-3-Clause", "https://x.example/changes", "https://x.example/source"
    )


def test_metadata_of_an_older_form_is_understood() -> None:
    metadata = Message()
    metadata["Classifier"] = "License :: OSI Approved :: MIT License"
    metadata["Home-page"] = "https://x.example"
    assert described_by(metadata) == Described("MIT License", "", "https://x.example")
