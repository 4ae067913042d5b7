"""The message catalog: what ``journalctl -x`` shows for an event, by the real journalctl."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from nodeagent.core.catalog.settings import Settings
from nodeagent.core.model import EventKind
from nodeagent.journal import code_id, explained_ids, fields, kind_id, line, message_id
from nodeagent.store.records import StoredEvent
from nodeagent.tables.load import load_catalog
from tests.api.samples import event
from tests.documents import ROOT
from tests.journals import Entry, write_journal

BOOT: Final = "0123456789abcdef0123456789abcdef"
DATABASES: Final = "/var/lib/systemd/catalog"
PLACE: Final = "usr/lib/systemd/catalog/nodeagent.catalog"


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root folder with the compiled catalog."""
    folder = tmp_path_factory.mktemp("root")
    (folder / PLACE).parent.mkdir(parents=True)
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'packaging'}"}
    command = [sys.executable, "-m", "journal_catalog", str(folder / PLACE)]
    subprocess.run(command, cwd="/", env=env, check=True, timeout=300)
    subprocess.run(["journalctl", "--root", folder, "--update-catalog"], check=True)
    return folder


def stored(**changes: Any) -> StoredEvent:
    return StoredEvent(seq=7, wall_ns=1, event=replace(event(), **changes))


def explained(system: Path, stored: StoredEvent) -> str:
    """What journalctl shows of the event; a line break is a blank."""
    identity = message_id(stored.event, explained_ids(system / PLACE))
    written = {**fields(stored), "MESSAGE_ID": identity}
    entry = Entry(boot=BOOT, at_s=1_790_000_000, message=line(stored), fields=written)
    write_journal(system / "var/log/journal" / BOOT, [entry])
    # To show, it takes the catalog of the running system, whatever --root is.
    show = 'exec journalctl --root "$0" -x --no-pager "MESSAGE_ID=$1"'
    script = f'mount --bind "$0{DATABASES}" {DATABASES} && {show}'
    command = ["unshare", "--mount", "sh", "-c", script, str(system), identity]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return " ".join(shown.replace("░░", " ").split())


@pytest.mark.root
def test_a_fault_is_explained_by_the_row_of_its_code(system: Path) -> None:
    row = load_catalog([ROOT / "fault_codes"], Settings()).catalog.row("XID_79")
    assert row is not None
    shown = explained(system, stored())
    assert "Subject: gpu0: XID_79 GPU has fallen off the bus" in shown
    assert " ".join(row.description.split()) in shown
    assert f"Do: {' '.join(row.action.split())}" in shown
    assert "The verdict of gpu0 is now ISOLATE, the handling RESCHEDULE." in shown
    assert "Documentation: file:///usr/share/doc/nodeagent/docs/tables.md" in shown


@pytest.mark.root
def test_a_number_without_a_row_is_explained_by_its_family(system: Path) -> None:
    shown = explained(system, stored(code="XID_9999"))
    assert "Subject: gpu0: XID_9999 Xid without a row" in shown


@pytest.mark.root
def test_a_code_of_the_site_is_explained_by_the_kind_of_its_event(system: Path) -> None:
    shown = explained(system, stored(code="SITE_1", name="Fan tray open"))
    assert "Subject: A fault has occurred on gpu0" in shown
    assert "Code SITE_1 (Fan tray open) was raised, from kmsg." in shown


@pytest.mark.root
def test_what_is_done_about_a_fault_is_explained_as_that(system: Path) -> None:
    shown = explained(system, stored(kind=EventKind.CLEARED, why="recover from kmsg"))
    assert "Subject: A fault of gpu0 is over" in shown


def test_each_kind_and_each_shipped_code_has_one_entry_that_can_be_shown(system: Path) -> None:
    rows = load_catalog([ROOT / "fault_codes"], Settings()).catalog.rows.values()
    ids = explained_ids(system / PLACE)
    assert ids == {*map(kind_id, EventKind), *(code_id(row.code) for row in rows)}
    listed = subprocess.run(
        ["journalctl", "--root", system, "--list-catalog"], capture_output=True, text=True, check=True
    )
    assert len(listed.stdout.splitlines()) == len(ids)


def test_ids_by_which_sites_search_never_change() -> None:
    assert (kind_id(EventKind.RAISED), code_id("xid_79")) == (
        "8472d0cb9ecd53fe8c8e02ee955609f3",
        "53925c637da15121abd78780eda3ea64",
    )


def test_without_a_catalog_each_entry_has_the_id_of_its_kind(tmp_path: Path) -> None:
    assert message_id(event(), explained_ids(tmp_path / "none")) == kind_id(EventKind.RAISED)
