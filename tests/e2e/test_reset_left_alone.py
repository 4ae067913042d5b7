"""A reset that is under way when the system is upgraded around it: who restarts services that use libraries
of before leaves it alone, and a shutdown waits for it. With needrestart as Debian has it.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.machine import Machine, booted, until, write
from tests.e2e.resetting_node import (
    CONFIGURATION,
    CONFIGURED,
    DROP_IN,
    PATH,
    UNIT,
    break_and_begin,
    ended,
    observed,
    unit_of_a_reset,
)
from tests.e2e.tree import laid_over, switch

pytestmark = [pytest.mark.release, pytest.mark.root, pytest.mark.slow, pytest.mark.timeout(900)]

GO_ON, DONE = "/var/tmp/go-on", "/var/tmp/done"
# A hook that waits, so that the reset is under way for as long as a test wants.
HOOK = f"""
after = [["sh", "-c", "touch /var/tmp/waits; until test -e {GO_ON}; do sleep 0.2; done; touch {DONE}"]]
hook_timeout = "60s"
"""
# The machine's other services are not the matter here.
ONLY_OURS = "$nrconf{blacklist_rc} = [qr(^(?!nodeagent))];\n"


@pytest.fixture
def node(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """With the package installed, and eight emulated NPUs, of which one is just being reset."""
    with laid_over(tmp_path_factory.mktemp("node"), installed, also=("needrestart",)) as root:
        switch(root, "disable", UNIT)
        write(root, f"/etc/systemd/system/{UNIT}.d/test.conf", DROP_IN)
        write(root, "/etc/systemd/system/nodeagent-reset@.service.d/test.conf", CONFIGURED)
        write(root, PATH, CONFIGURATION.replace('after = [["sleep", "8"]]', HOOK))
        write(root, "/etc/needrestart/conf.d/test.conf", ONLY_OURS)
        with booted(root) as machine:
            machine.run("mkdir", "/var/lib/nodeagent")  # or the emulator writes elsewhere
            machine.run("systemd-run", "--unit=emulator", "nodeagent", "emulator", "start", "8x910B")
            until(lambda: machine.run("nodeagent", "emulator", "show", check=False).returncode == 0, bool)
            machine.run("systemctl", "enable", "--now", UNIT)
            until(lambda: observed(machine), lambda number: number == 8)
            break_and_begin(machine, "npu3")
            until((root / "var/tmp/waits").exists, bool)
            yield machine


def test_needrestart_restarts_the_daemon_and_not_the_reset(node: Machine) -> None:
    library = node.read("sh", "-c", "realpath /lib/*-linux-gnu/libm.so.6")
    reset, daemon = unit_of_a_reset(node), node.property_of(UNIT, "MainPID")
    process = node.property_of(reset, "MainPID")
    # As dpkg replaces a file: whoever has it open uses one that is deleted.
    node.run("sh", "-c", f"cp -p {library} {library}.new && mv {library}.new {library}")

    said = node.run("needrestart", "-v", "-l", "-r", "a")

    until(lambda: node.property_of(UNIT, "ActiveState"), lambda state: state == "active")
    assert node.property_of(UNIT, "MainPID") != daemon, said.stderr
    assert f"systemd refuses restarts of {reset}" in said.stderr
    assert (unit_of_a_reset(node), node.property_of(reset, "MainPID")) == (reset, process)
    node.run("touch", GO_ON)
    assert ended(node, 1) == ("npu3", "done: verified by a poll of every member")


def test_nobody_stops_or_restarts_it_by_its_name_or_by_a_pattern(node: Machine) -> None:
    reset = unit_of_a_reset(node)

    for words in (
        ("stop", reset),
        ("restart", reset),
        ("stop", "nodeagent-reset@*"),
        ("try-restart", "nodeagent*"),
    ):
        refused = node.run("systemctl", *words, check=False)
        assert "Operation refused, unit" in refused.stderr

    assert unit_of_a_reset(node) == reset
    node.run("touch", GO_ON)
    assert ended(node, 1) == ("npu3", "done: verified by a poll of every member")


def test_a_shutdown_waits_for_its_end(node: Machine) -> None:
    node.run("systemctl", "--no-block", "poweroff")
    until(lambda: node.property_of(UNIT, "ActiveState"), lambda state: state != "active")
    assert unit_of_a_reset(node)
    (node.root / GO_ON.lstrip("/")).touch()

    until(node.is_up, lambda is_up: not is_up)

    assert (node.root / DONE.lstrip("/")).exists()
