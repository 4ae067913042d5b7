"""Writes the message catalog of the journal: ``python -m journal_catalog FILE``, with packaging on the path.

``journalctl -x`` explains each event of the daemon by it: a fault by the row of its code in the shipped
tables, any other event, and a fault of a table of the site, by its kind. Called when the package is built;
the catalog is not committed. The form is that of systemd (sd_journal_get_catalog(3)). Equal sources give
equal bytes.
"""

import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from nodeagent.core.catalog.catalog import Row
from nodeagent.core.catalog.settings import Settings
from nodeagent.core.model import EventKind
from nodeagent.journal import code_id, kind_id
from nodeagent.tables.load import load_catalog

ROOT: Final = Path(__file__).resolve().parents[1]
_WIDTH: Final = 76
_DOCUMENTS: Final = "file:///usr/share/doc/nodeagent/docs"

_DEVICE: Final = "@NODEAGENT_DEVICE@"
_VERDICT: Final = f"The verdict of {_DEVICE} is now @NODEAGENT_VERDICT@, the handling @NODEAGENT_HANDLING@."
_WHY: Final = f'"nodeagent why {_DEVICE}" shows all that is open on it, the evidence, and what happens next.'
_STATUS: Final = '"nodeagent status" shows what is open on this node, and what happens next.'
_CODE: Final = (
    '"nodeagent explain @NODEAGENT_CODE@" shows what the code means, how it is handled, and what to do.'
)
_JOBS: Final = '"nodeagent job list" shows the jobs of this node, and "nodeagent job show" one of them.'
_REASON: Final = "Reason: @NODEAGENT_WHY@"

KINDS: Final[Mapping[EventKind, tuple[str, str, tuple[str, ...]]]] = {
    EventKind.RAISED: (
        f"A fault has occurred on {_DEVICE}",
        "operating.md",
        (
            "Code @NODEAGENT_CODE@ (@NODEAGENT_NAME@) was raised, from @NODEAGENT_SOURCE@.",
            _VERDICT,
            _CODE,
            _WHY,
        ),
    ),
    EventKind.LEVEL_CHANGED: (
        f"The level of a fault on {_DEVICE} has changed",
        "operating.md",
        ("Code @NODEAGENT_CODE@ now has the level @NODEAGENT_CONDITION_LEVEL@.", _REASON, _VERDICT, _WHY),
    ),
    EventKind.VERDICT_CHANGED: (
        f"Whether {_DEVICE} may get new work has changed",
        "operating.md",
        (_VERDICT, _REASON, _WHY),
    ),
    EventKind.CLEARED: (
        f"A fault of {_DEVICE} is over",
        "operating.md",
        ("Code @NODEAGENT_CODE@ is closed. Nothing is to be done.", _REASON, _VERDICT),
    ),
    EventKind.NOTICE: (
        f"@NODEAGENT_CODE@ was reported for {_DEVICE}",
        "operating.md",
        ("It opens no fault and changes no verdict.", _CODE),
    ),
    EventKind.PROMOTED: (
        f"A rule has raised the level of {_DEVICE}",
        "tables.md",
        (
            "Rule @NODEAGENT_RULE@ holds for code @NODEAGENT_CODE@. What it raises stays after the fault.",
            _VERDICT,
            f'End it when its cause is removed: nodeagent release {_DEVICE} --reason "..."',
        ),
    ),
    EventKind.RELEASED: (
        f"An isolation or promotion of {_DEVICE} has ended",
        "operating.md",
        (_REASON, _VERDICT, '"nodeagent audit" shows who ended it.'),
    ),
    EventKind.SUPPRESSED: (
        f"A fault of {_DEVICE} is part of another",
        "tables.md",
        (
            "Code @NODEAGENT_CODE@ is counted with the fault that caused it. It changes no verdict.",
            _REASON,
            _WHY,
        ),
    ),
    EventKind.ISOLATED: (
        f"{_DEVICE} was taken out of service",
        "operating.md",
        (_REASON, "It gets no new work until it is released.", f'nodeagent release {_DEVICE} --reason "..."'),
    ),
    EventKind.ACTION_PROPOSED: (
        f"A reset of {_DEVICE} is proposed or waits",
        "resets.md",
        (
            _REASON,
            "In mode dry-run it is only reported. Otherwise it begins when its devices are free.",
            _STATUS,
        ),
    ),
    EventKind.ACTION_STARTED: (
        f"A reset of {_DEVICE} has begun",
        "resets.md",
        (_REASON, "Leave the devices alone until it has ended.", _STATUS),
    ),
    EventKind.ACTION_FINISHED: (
        f"A reset of {_DEVICE} has ended",
        "resets.md",
        (
            _REASON,
            "If it failed, the device stays isolated, and a person decides.",
            "Evidence: /var/lib/nodeagent-reset/evidence",
            _WHY,
        ),
    ),
    EventKind.DEVICE_SEEN: (f"{_DEVICE} was found", "operating.md", ("It is watched from now on.", _VERDICT)),
    EventKind.DEVICE_GONE: (
        f"{_DEVICE} is not there any more",
        "operating.md",
        (
            _VERDICT,
            f'If it was taken out for good: nodeagent forget {_DEVICE} --reason "..."',
            "Otherwise look for it in the kernel log and by lspci.",
        ),
    ),
    EventKind.DEVICE_REPLACED: (
        f"Another part is in the place of {_DEVICE}",
        "operating.md",
        (_REASON, "Faults of the part that was taken out are closed.", _VERDICT),
    ),
    EventKind.SOURCE_LOST: (
        "A source is not observed any more",
        "operating.md",
        (
            "Source @NODEAGENT_SOURCE@ does not answer, so faults that it would report are not seen.",
            _REASON,
            "See whether its driver answers (nvidia-smi, npu-smi info), and journalctl -u nodeagent.",
        ),
    ),
    EventKind.SOURCE_BACK: (
        "A source is observed again",
        "operating.md",
        ("Source @NODEAGENT_SOURCE@ answers. Nothing is to be done.",),
    ),
    EventKind.QUIESCED: (
        "No action begins on this node",
        "operating.md",
        (_REASON, "Drivers are closed and no reset begins, until somebody allows it: nodeagent resume"),
    ),
    EventKind.RESUMED: ("Actions are allowed again on this node", "operating.md", (_REASON, _STATUS)),
    EventKind.TABLES_RELOADED: (
        "New fault tables are in force",
        "tables.md",
        (_REASON, "What is open keeps open; its level may have changed."),
    ),
    EventKind.TABLES_REJECTED: (
        "New fault tables were refused",
        "tables.md",
        (_REASON, 'The tables before them stay in force. "nodeagent tables check" lists each problem.'),
    ),
    EventKind.STARTED: (
        "The daemon has started",
        "operating.md",
        ("It goes on from its store. @NODEAGENT_WHY@", _STATUS),
    ),
    EventKind.JOB_BEGUN: ("A supervised job has begun", "jobs.md", (_REASON, _JOBS)),
    EventKind.JOB_ASKED: (
        "A supervised job was asked to stop or to leave",
        "jobs.md",
        (_REASON, "It saves its state and stops, or is ended after its time.", _JOBS),
    ),
    EventKind.JOB_STOPPED: ("A supervised job has stopped its command", "jobs.md", (_REASON, _JOBS)),
    EventKind.JOB_RERUN: ("A supervised job runs its command again", "jobs.md", (_REASON, _JOBS)),
    EventKind.JOB_SUSPECTED: ("A supervised job may hang", "jobs.md", (_REASON, _JOBS)),
    EventKind.JOB_SUSPENDED: ("A supervised job does not run", "jobs.md", (_REASON, _JOBS)),
    EventKind.JOB_ENDED: ("A supervised job has ended", "jobs.md", (_REASON, _JOBS)),
    EventKind.JOB_SLOW: (
        "A rank or a chip of a job holds up the others",
        "jobs.md",
        (_REASON, "A second entry reports when it no longer does.", _JOBS),
    ),
}
"""Of each kind the subject, the document, and the paragraphs."""


def main() -> None:
    Path(sys.argv[1]).write_text(catalog(), encoding="utf-8")


def catalog() -> str:
    """The text of the file."""
    return "\n".join(("# The events of nodeagent. Written when the package is built.\n", *_entries()))


def _entries() -> Iterator[str]:
    for kind, (subject, document, paragraphs) in KINDS.items():
        yield _entry(kind_id(kind), subject, document, paragraphs)
    for row in load_catalog([ROOT / "fault_codes"], Settings()).catalog.rows.values():
        yield _of_a_row(row)


def _of_a_row(row: Row) -> str:
    induced = ", of the application" if row.user_induced else ""
    return _entry(
        code_id(row.code),
        f"{_DEVICE}: @NODEAGENT_CODE@ {row.name}",
        "tables.md",
        (
            row.description,
            f"Do: {row.action}",
            f"Level as shipped: {row.level}{induced}. {_VERDICT}",
            f'Evidence: "nodeagent why {_DEVICE}". The row in force: "nodeagent explain @NODEAGENT_CODE@".',
        ),
    )


def _entry(identity: str, subject: str, document: str, paragraphs: tuple[str, ...]) -> str:
    body = "\n\n".join(textwrap.fill(each, _WIDTH, break_on_hyphens=False) for each in paragraphs)
    return (
        f"-- {identity}\nSubject: {subject}\nDefined-By: nodeagent\n"
        f"Documentation: {_DOCUMENTS}/{document}\n\n{body}\n"
    )


if __name__ == "__main__":
    main()
