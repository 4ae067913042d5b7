"""What the documents show is what works: programs, tables, configurations, commands, as they stand there."""

import inspect
import os
import re
import subprocess
import sys
import tomllib
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
import pytest
import yaml

from nodeagent.cli.main import PARTS, main
from nodeagent.config.load import load_config
from nodeagent.core.catalog.settings import Settings
from nodeagent.metrics import collector, devices
from nodeagent.metrics.telemetry import HELP
from nodeagent.tables.load import load_catalog
from tests.documents import (
    BLOCK,
    DOCUMENTS,
    INLINE,
    PROGRAM,
    PROSE_LINK,
    ROOT,
    block,
    blocks,
    called,
    name_of,
    orders,
    prose,
    shell_lines,
)
from tests.harness.node import Node, xid_line
from tests.waiting import Lines

SUBSCRIBING: Final = ROOT / "docs" / "subscribing.md"
JOBS: Final = ROOT / "docs" / "jobs.md"
"""Its program is run by tests/job/test_document.py."""

SHIPPED_CONFIGURATION: Final = ROOT / "packaging" / "nodeagent.toml"
LANGUAGES: Final = {"sh", "toml", "python", "text", "yaml"}
"""Of a block; each has its check here. ``text`` is a drawing or output: test_walk_through makes a status."""

TABLES: Final = [each for each in blocks("toml") if {"kind", "frequency"} & tomllib.loads(each).keys()]
CONFIGURATIONS: Final = [each for each in blocks("toml") if each not in TABLES]

SYSTEM_COMMANDS: Final = {
    *("apt", "cp", "curl", "dnf", "git", "modprobe", "node", "npm", "printf", "python3", "rm", "systemctl"),
    *("diff", "gpg", "install", "rpmkeys", "rpmsign", "rsync", "sed", "sha256sum"),
    *("journalctl", "ln", "lspci", "sos", "touch"),
    *("ctr", "envsubst", "export", "kubectl", "podman", "promtool", "skopeo"),
}

LINKING: Final = [
    *DOCUMENTS,
    *(
        path
        for folder in ("tests", "packaging", "fault_codes", "nodeagent", "proto")
        for path in sorted((ROOT / folder).rglob("*.md"))
        if not {"node_modules", "website"} & set(path.parts)
    ),
]
"""Also what is next to code: its links lead somewhere too. Sphinx checks those of the site."""


class Subscriber:
    """The client program of the documents, started as a newcomer would."""

    def __init__(self, folder: Path, node: Node) -> None:
        program = folder / "subscriber.py"
        program.write_text(block("python", SUBSCRIBING))
        self._process = subprocess.Popen(
            [sys.executable, program, folder / "position"],
            env={**os.environ, "NODEAGENT_SOCKET": str(node.socket), "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self.complaints = Lines(self._process.stderr)
        self._lines = Lines(self._process.stdout)

    def __enter__(self) -> Lines:
        return self._lines

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(timeout=30)


def test_the_client_program_sees_the_state_then_events_and_goes_on_where_it_was(tmp_path: Path) -> None:
    node = Node.within(tmp_path)
    with node.daemon():
        with Subscriber(tmp_path, node) as lines:
            assert lines.until("all").endswith(": 'ALLOW'}\n")
            node.write(xid_line(79))
            first = lines.until("XID_79").split()
        node.write(xid_line(48))
        with Subscriber(tmp_path, node) as lines:
            second = lines.until(" ").split()

    assert first[1:] == ["raised", "0000:3b:00.0", "XID_79", "ISOLATE", "RESCHEDULE"]
    # Killed between an event and its position it gets that event again: at least once, never not.
    assert int(second[0]) in (int(first[0]), int(first[0]) + 1)


def test_the_client_program_says_so_where_no_daemon_answers(tmp_path: Path) -> None:
    subscriber = Subscriber(tmp_path, Node.within(tmp_path))
    with subscriber:
        words = subscriber.complaints.until("nodeagent")

    assert words.startswith("nodeagent does not answer, waiting for it: UNAVAILABLE: ")
    assert str(tmp_path / "n.sock") in words


def test_the_client_program_has_twenty_lines() -> None:
    assert len(block("python", SUBSCRIBING).splitlines()) <= 20


def test_every_block_is_of_a_language_that_is_checked() -> None:
    shown = {found["language"] for document in DOCUMENTS for found in BLOCK.finditer(document.read_text())}

    assert shown == LANGUAGES
    assert sorted(blocks("python")) == sorted([block("python", SUBSCRIBING), *blocks("python", JOBS)])


def test_every_yaml_block_can_be_read() -> None:
    read = [yaml.safe_load(text) for text in blocks("yaml")]

    assert read
    assert [each for each in read if not isinstance(each, dict)] == []


def test_the_tables_are_sound_over_the_shipped_ones(tmp_path: Path) -> None:
    for number, table in enumerate(TABLES):
        (tmp_path / f"{number}.toml").write_text(table)

    loaded = load_catalog([ROOT / "fault_codes", tmp_path], Settings())

    assert loaded.warnings == ()
    times = {rule.id: rule.times for rule in loaded.catalog.frequency}
    assert (times["ascend-hardware-repeat"], times["xid-repeat"]) == (3, 5)
    assert loaded.catalog.rows["XID_177"].name == "Clocks limited for a while"
    assert "ACME_DEAD" in {pattern.id for pattern in loaded.catalog.patterns}


@pytest.mark.parametrize("shown", CONFIGURATIONS)
def test_the_configurations_are_sound(shown: str, tmp_path: Path) -> None:
    configuration = tmp_path / "nodeagent.toml"
    configuration.write_text(shown)

    load_config(configuration, {})


def test_every_key_of_the_configuration_that_is_named_exists() -> None:
    """Such as `[agent] once_hold`; where no value is shown with it."""
    known = set()
    section = ""
    for line in SHIPPED_CONFIGURATION.read_text().splitlines():
        if found := re.match(r"\[([\w.]+)\]", line):
            section = found[1]
        elif found := re.match(r"# (\w+) = ", line):
            known.add((section, found[1]))
    named = {
        (found[1], found[2])
        for document in DOCUMENTS
        for code in INLINE.findall(prose(document))
        if (found := re.match(r"\[([a-z.]+)\] (\w+)", code))
    }

    assert ("agent", "kernel_line_hold") in named
    assert named - known == set()


def test_every_command_line_is_taken(tmp_path: Path) -> None:
    """By the parser of the command that it calls: command, options and arguments exist. Files may have to."""
    (tmp_path / "kern.log").touch()
    refused = {}
    for document in DOCUMENTS:
        for words in orders(document):
            if words[0] != "COMMAND" and (reason := _refusal([_file_here(word, tmp_path) for word in words])):
                refused[name_of(document), *words] = reason

    assert refused == {}


def _file_here(word: str, folder: Path) -> str:
    """In place of one that only an installed node has."""
    if not word.startswith("/"):
        return word
    return str(folder / Path(word).name if Path(word).suffix else folder)


def _refusal(words: list[str]) -> str:
    """Why the command line is refused; empty where it is taken."""
    command: click.Command = main
    context = click.Context(main, info_name="nodeagent")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        if found is None:
            return f"there is no command {words[0]!r} in {context.command_path}"
        context = click.Context(found, info_name=words[0], parent=context)
        command, words = found, words[1:]
    if {"-h", "-V", "-o"} & set(words):
        return ""
    try:
        command.make_context(context.info_name, words, parent=context.parent)
    except click.MissingParameter as missing:
        return "" if words == [] else missing.format_message()
    except click.UsageError as refused:
        return refused.format_message()
    return ""


def test_every_other_shell_line_calls_what_there_is() -> None:
    offered = set(re.findall(r"^  ([a-z-]+) ", (ROOT / "dev").read_text(), flags=re.MULTILINE))

    def exists(words: list[str]) -> bool:
        if words[0] == "./dev":
            return words[1] in offered
        return words[0] == PROGRAM or words[0] in SYSTEM_COMMANDS or (ROOT / words[0]).exists()

    lines = [(name_of(document), called(line)) for document in DOCUMENTS for line in shell_lines(document)]

    assert [line for line in lines if not exists(line[1])] == []


def test_the_documents_show_the_commands_that_matter() -> None:
    shown = {words[0] for document in DOCUMENTS for words in orders(document)}

    assert {"status", "events", "replay", "scan", "claim", "reset"} <= shown
    assert shown - set(PARTS) == {"COMMAND"}


def test_every_code_that_is_explained_or_raised_has_a_row() -> None:
    rows = load_catalog([ROOT / "fault_codes"], Settings()).catalog.rows
    named = {
        word
        for document in DOCUMENTS
        for words in orders(document)
        for word in words
        if words[0] == "explain" or words[:2] == ["emulator", "raise"]
        if re.fullmatch(r"XID_\d+|NV_\w+|[0-9A-F]{8}", word)
        and not any(each.startswith("ub") for each in words)
    }

    assert {"XID_79", "80E01801"} <= named
    assert named - rows.keys() == set()


def test_every_metric_that_is_shown_exists() -> None:
    shown = {
        name
        for text in blocks("text")
        for name in re.findall(r"^nodeagent_(\w+)\{", text, flags=re.MULTILINE)
    }
    families = {
        name
        for module in (collector, devices)
        for name in re.findall(r'"nodeagent_(\w+)"', inspect.getsource(module))
    }

    assert "device_verdict" in shown
    assert shown - families - HELP.keys() == set()


def test_every_link_leads_to_a_file_and_to_a_heading_in_it() -> None:
    assert [found for document in LINKING for found in _broken_links(document)] == []


def _broken_links(document: Path) -> Iterator[tuple[str, str]]:
    for link in PROSE_LINK.findall(prose(document)):
        if link.startswith("https://"):
            continue
        path, _, heading = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        if not target.exists() or (heading and heading not in _anchors(target)):
            yield name_of(document), link


def _anchors(document: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", prose(document), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}


def test_every_link_by_reference_is_defined_and_every_definition_used() -> None:
    """As `[yes][gpud]` with `[gpud]: https://...` below: one that is not defined would be shown as it is."""
    unlike = {}
    for document in DOCUMENTS:
        text = INLINE.sub("", prose(document))
        defined = set(re.findall(r"^\[([\w-]+)\]: \S+$", text, flags=re.MULTILINE))
        used = set(re.findall(r"\]\[([\w-]+)\]", text))
        if defined != used:
            unlike[name_of(document)] = defined ^ used

    assert unlike == {}


def test_every_link_to_another_site_is_an_address() -> None:
    """Whether it answers is not asked: tests open no other site."""
    links = {
        link
        for document in DOCUMENTS
        for link in re.findall(r"\w+://[^\s)>\]]+", INLINE.sub("", prose(document)))
    }
    parts = {link: urllib.parse.urlsplit(link) for link in links}

    assert len(links) > 10
    assert [link for link, each in parts.items() if each.scheme != "https" or "." not in each.netloc] == []


EXAMPLES: Final = ("uptime", "absence", "snooze", "driver.py", "client.py")
"""Of files that a reader is shown how to make."""


def test_every_source_file_that_is_named_exists() -> None:
    """In the folder that is named before it, next to the file before it, in ``nodeagent/`` or in the root."""
    missing = []
    for document in DOCUMENTS:
        folders = [ROOT, ROOT / "nodeagent"]
        for name in INLINE.findall(prose(document)):
            if not re.fullmatch(r"[a-z][\w/]*(\.py|(?<=\w)/)", name) or any(
                each in name for each in EXAMPLES
            ):
                continue
            if found := [folder / name for folder in reversed(folders) if (folder / name).exists()]:
                folders[2:] = [found[0].parent, *([found[0]] if found[0].is_dir() else [])]
            else:
                missing.append((name_of(document), name))

    assert missing == []


def test_every_document_is_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    to_read = [ROOT / "README.md"]
    while to_read:
        document = to_read.pop()
        if document in reached:
            continue
        reached.add(document)
        links = [link.partition("#")[0] for link in PROSE_LINK.findall(prose(document))]
        to_read += [(document.parent / link).resolve() for link in links if link.endswith(".md")]

    assert set(DOCUMENTS) - reached == set()
