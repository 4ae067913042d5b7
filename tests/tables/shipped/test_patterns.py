"""The shipped kernel-log patterns against lines from the field: every form is taken, near misses are not."""

import io
import tomllib
from pathlib import Path
from typing import Any

import pytest

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.model import Assertion
from nodeagent.drivers.kmsg.match import Match, Matcher
from nodeagent.replay.kernel_text import KernelText
from nodeagent.replay.log import GivenFile, LogLine, ReadTally
from nodeagent.wire import as_patterns
from tests.shipped import shipped_catalog

REPOSITORY = Path(__file__).parents[3]
LINES: dict[str, Any] = tomllib.loads((REPOSITORY / "tests/fixtures/kernel_lines.toml").read_text())
SAMPLES: dict[str, Any] = tomllib.loads((REPOSITORY / "tests/fixtures/kernel_samples.toml").read_text())
SOURCES: dict[str, Any] = tomllib.loads((REPOSITORY / "tests/fixtures/kernel_sources.toml").read_text())
"""Wordings as the sources of kernels have them, each with its place there."""
ASCEND: dict[str, Any] = tomllib.loads((REPOSITORY / "tests/fixtures/ascend_driver.toml").read_text())
"""Those of Ascend's driver; ``test_ascend_lines`` has the rest of it."""
IN_A_LOG = (
    "[6781741.548779] ",
    "[Sun Jan  5 20:25:34 2025] ",
    "[  228.600423][ T1234] ",
    "<4>[  201.654822] ",
    "Oct 16 20:47:19 node-7 kernel: ",
    "2025-10-16T20:47:19+0200 node-7 kernel: ",
    "kern  :warn  : 2025-01-21T04:41:44,285060+00:00 ",
)
"""What logs put before a message. Further lines of one message are set below its beginning."""
FAMILIES_OF_THE_DATA = 66
FAMILIES_OF_THE_SOURCES = 33
"""Those of which the data know nothing: adapters, slots, Btrfs, IOMMUs, parts that firmware names, work
that is stuck, file systems of other machines, AMD's GPUs and their like."""
OTHER_FORMS = 99
"""Patterns for one more form of a family, or for its recovery, beside the family's own."""


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return shipped_catalog()


@pytest.fixture(scope="module")
def matcher(catalog: Catalog) -> Matcher:
    return Matcher(as_patterns(catalog.patterns))


def only(matcher: Matcher, text: str) -> Match:
    (found,) = matcher.match([text])
    assert found is not None, f"taken by nothing: {text}"
    return found


def taken(matcher: Matcher, texts: list[str]) -> dict[str, str]:
    """Of these messages those that a pattern takes, and which one: each message is the only one."""
    found = {text: matcher.match([text])[0] for text in texts}
    return {text: match.pattern for text, match in found.items() if match}


def read_from_logs(text: str) -> list[str]:
    """The message as it is read from a log of each form."""
    found: list[LogLine] = []
    for head in IN_A_LOG:
        below = "\n" + " " * len(head)
        file = io.BytesIO(f"{head}{text.replace(chr(10), below)}\n".encode())
        found += KernelText(GivenFile(boot_ns=0, written_ns=0, tally=ReadTally())).read_file(file)
    return [line.message for line in found]


@pytest.mark.parametrize("line", LINES["line"], ids=lambda line: line["text"][:50])
def test_a_line_is_taken_apart(matcher: Matcher, line: dict[str, Any]) -> None:
    found = only(matcher, line["text"])
    groups = {key: value for key, value in found.groups.items() if key in line["groups"]}
    assert (found.pattern, found.code, groups) == (line["pattern"], line["code"], line["groups"])


def test_a_line_has_its_code_and_device(matcher: Matcher) -> None:
    listed = SAMPLES["of_the_field"] + SAMPLES["of_the_formats"]
    found = [(text, only(matcher, text)) for text, *_ in listed]
    assert [[text, match.pattern, match.code, match.device] for text, match in found] == listed


def test_a_wording_of_a_kernel_has_its_code_and_device(matcher: Matcher) -> None:
    wrong = {}
    for line in SOURCES["line"]:
        match = only(matcher, line["text"])
        wanted = (line["pattern"], line["code"], line.get("device", "node"), line.get("count", 1))
        if (found := (match.pattern, match.code, match.device, match.count)) != wanted:
            wrong[line["text"], line["source"]] = found
    assert wrong == {}


def test_a_wording_of_no_fault_is_taken_by_nothing(matcher: Matcher) -> None:
    assert taken(matcher, [line["text"] for line in SOURCES["none"]]) == {}


def test_a_message_is_the_same_in_a_log_of_each_form() -> None:
    texts = [text for text, *_ in SAMPLES["of_the_field"]]
    assert {text: read_from_logs(text) for text in texts} == {text: [text] * len(IN_A_LOG) for text in texts}


def test_a_line_of_another_family_is_left_to_it(matcher: Matcher) -> None:
    wrong = [
        (text, pattern)
        for text, pattern in SAMPLES["near"]
        for match in matcher.match([text])
        if match and match.pattern == pattern and match.assertion is not Assertion.RECOVER
    ]
    assert wrong == []


def test_a_line_without_a_fault_is_taken_by_nothing(matcher: Matcher) -> None:
    assert taken(matcher, SAMPLES["nothing"]) == {}


def test_every_shipped_pattern_takes_some_line(catalog: Catalog) -> None:
    taken = {pattern for sort in ("of_the_field", "of_the_formats") for _, pattern, *_ in SAMPLES[sort]}
    taken |= {line["pattern"] for line in (*LINES["line"], *SOURCES["line"])}
    taken |= {pattern for _, pattern, *_ in ASCEND["printed"] + ASCEND["older"]}
    assert {pattern.id for pattern in catalog.patterns} == taken


def test_every_line_has_a_row_or_a_family(catalog: Catalog) -> None:
    codes = {code for sort in ("of_the_field", "of_the_formats") for _, _, code, _ in SAMPLES[sort]}
    codes |= {line["code"] for line in SOURCES["line"]}
    assert [code for code in codes if catalog.row(code) is None] == []


def test_patterns_are_one_for_each_known_family_and_some_for_its_other_forms(catalog: Catalog) -> None:
    assert len(catalog.patterns) == FAMILIES_OF_THE_DATA + FAMILIES_OF_THE_SOURCES + OTHER_FORMS


def test_a_device_is_named_by_its_driver_and_by_no_user(catalog: Catalog) -> None:
    """An address or a number; the name of a card's port stands behind the card's address, or in what only
    a card's driver can cause. A file system is mounted by root.
    """
    by_name = {pattern.id for pattern in catalog.patterns if pattern.device in ("port", "bond")}
    assert {pattern.device for pattern in catalog.patterns} == {
        "node",
        "pci",
        "port",
        "npu{npu}",
        "nfs:{server}",
        "lustre:{target}",
        "ceph:{server}",
        "smb:{server}",
        "{bus}:{slot}",
    }
    assert by_name == {
        "EFA_FAIL",
        "EFA_FAIL_NO_ADDRESS",
        "ENA_STALL",
        "IPOIB_TIMEOUT",
        "NETDEV_WDOG",
        "NETDEV_WDOG_DRIVER",
        "NETDEV_WDOG_DRIVER_ADDRESS",
        "NETDEV_WDOG_MLX4",
        "NETDEV_WDOG_NAMED_FIRST",
        "NETDEV_WDOG_NO_DEVICE",
        "NIC_LINK_DOWN",
        "NIC_LINK_DOWN_HNS3",
        "NIC_LINK_DOWN_NO_ADDRESS",
        "NIC_LINK_UP",
        "NIC_LINK_UP_HNS3",
        "NIC_LINK_UP_NO_ADDRESS",
        "NIC_LINK_UP_NO_SPEED",
    }


@pytest.mark.parametrize("code", ["BOND_DOWN", "CONNTRACK", "IOMMU_EVENT", "NCCL_SEGV", "OOM.invoked"])
def test_what_any_user_can_have_the_kernel_say_is_only_told(catalog: Catalog, code: str) -> None:
    row = catalog.row(code)
    assert row is not None
    assert row.notice
    assert {pattern.device for pattern in catalog.patterns if pattern.code == code} == {"node"}
