"""The IMEX service is asked where a node has it, by a command that stands for NVIDIA's own."""

from pathlib import Path

import pytest

from nodeagent.core.model import Verdict
from nodeagent.drivers.nvidia.checks import fabric
from nodeagent.drivers.nvidia.checks.fabric import CODES, DEGRADED, IMEX_DOWN, IMEX_NOT_READY, Imex
from tests.drivers.nvidia.bench import GpuNode, Judge, judged

NOT_CONFIGURED = "Failed to read node configuration file /etc/nvidia-imex/nodes_config.cfg"
UP = '{"nodes":{"0":{"status":"READY","host":"10.0.0.1"}},"timestamp":"11/22/2026","status":"UP"}'


def install(root: Path, daemon: str, domain: str = UP, before: str = "") -> None:
    """Its answers to ``-q`` and to ``-N -j``."""
    command = root / "usr/bin/nvidia-imex-ctl"
    command.parent.mkdir(parents=True, exist_ok=True)
    script = f"""#!/bin/sh
{before}
case "$*" in
    -q) echo '{daemon}' ;;
    "-N -j") echo '{domain}' ;;
    *) echo "unknown options $*" >&2; exit 1 ;;
esac
"""
    command.write_text(script)
    command.chmod(0o755)


def asked(service: Imex) -> set[str]:
    """The codes that are active; each is known."""
    known = service.ask()
    assert set(known) == set(CODES)
    return {code for code, active in known.items() if active}


@pytest.mark.parametrize(
    ("daemon", "domain", "codes"),
    [
        ("READY", UP, set()),
        ("UNAVAILABLE", UP, set()),
        ("INITIALIZING", UP, {IMEX_NOT_READY}),
        ("WAITING_FOR_PEERS", UP.replace("UP", "DOWN"), {IMEX_NOT_READY, IMEX_DOWN}),
        ("READY", UP.replace("UP", "DEGRADED"), {DEGRADED}),
        (NOT_CONFIGURED, NOT_CONFIGURED, set()),
    ],
)
def test_it_is_judged_as_dcgm_does(tmp_path: Path, daemon: str, domain: str, codes: set[str]) -> None:
    install(tmp_path, daemon, domain)
    assert asked(Imex(str(tmp_path))) == codes


def test_a_node_without_the_command_has_no_fault(tmp_path: Path) -> None:
    assert asked(Imex(str(tmp_path))) == set()


def test_what_it_does_not_tell_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fabric, "LIMIT_S", 0.2)
    service = Imex(str(tmp_path))
    install(tmp_path, "READY", UP.replace("UP", "DOWN"))
    assert asked(service) == {IMEX_DOWN}
    for daemon, domain, before in (
        ("", "", "exit 1"),
        ("dancing", '{"status": 3}', ""),
        ("READY", UP, "exec sleep 5"),
    ):
        install(tmp_path, daemon, domain, before)
        assert asked(service) == {IMEX_DOWN}
    assert capsys.readouterr().err.count("IMEX is not watched") == 1
    install(tmp_path, "READY")
    assert asked(service) == set()


async def test_a_domain_that_is_down_is_a_fault_of_the_node_and_stops_nothing(
    h100: GpuNode, judge: Judge, tmp_path: Path
) -> None:
    install(tmp_path / "driver", "INIT_GPU", UP.replace("UP", "DOWN"))
    config = {**h100.spec().config, "driver_root": str(tmp_path / "driver")}
    async with judged(h100.spec(config=config), judge) as stage:
        await stage.back()
        await stage.until(lambda: set(judge.open("node")) == {IMEX_NOT_READY, IMEX_DOWN} or None)
        assert judge.open("node") == {IMEX_NOT_READY: "NotHandleFault", IMEX_DOWN: "SubHealthFault"}
        judge.skip(181)
        assert judge.open("node") == {IMEX_NOT_READY: "SubHealthFault", IMEX_DOWN: "SubHealthFault"}
        assert judge.view("node").verdict is Verdict.ALLOW
