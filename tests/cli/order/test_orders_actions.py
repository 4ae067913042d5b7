"""Reset, approve and refuse against a real daemon on emulated chips, whose resets wait for approval."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Nodeagent
from tests.cli.order.acting import CHIPS, RESET_NEEDED, Acting, acting
from tests.cli.terminal import COLOUR, on_terminal
from tests.waiting import wait_until


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Acting]:
    with acting(tmp_path) as node:
        yield node


@pytest.fixture
def patient(tmp_path: Path) -> Iterator[Acting]:
    """What is proposed stays announced for as long as a test takes."""
    with acting(tmp_path, announce="90s") as node:
        yield node


def status(nodeagent: Nodeagent) -> dict[str, Any]:
    status: dict[str, Any] = nodeagent("status", "-o", "json").json[0]
    return status


def verdicts(nodeagent: Nodeagent) -> set[str]:
    return {each["verdict"] for each in status(nodeagent)["devices"] if each["name"] in CHIPS}


def the_action(nodeagent: Nodeagent) -> dict[str, Any]:
    (action,) = status(nodeagent)["actions"]
    assert isinstance(action, dict)
    return action


def rehearsed(nodeagent: Nodeagent, in_the_way: str) -> dict[str, Any]:
    """What a reset of npu3 would do, once a poll has shown the daemon what blocks it."""

    def found() -> dict[str, Any] | None:
        plan: dict[str, Any] = nodeagent("reset", "npu3", "--dry-run", "-o", "json").json[0]["plan"]
        return plan if any(in_the_way in each for each in plan["blocked_by"]) else None

    plan = wait_until(found, in_the_way)
    assert plan is not None
    return plan


def test_a_dry_run_shows_group_holders_claims_limits_and_steps_and_changes_nothing(
    node: Acting, nodeagent: Nodeagent
) -> None:
    nodeagent("claim", "npu1", "--job", "slurm:7", "--kind", "training")
    node.chips.hold("npu2", os.getpid())
    plan = rehearsed(nodeagent, "npu2 is used by")
    before = status(nodeagent)["seq"]
    shown = nodeagent("reset", "npu3", "--dry-run")

    assert sorted(plan["devices"]) == CHIPS
    assert (plan["devices"][0], plan["mode"], plan["refused"], plan["window"]) == (
        "npu3",
        "ask",
        "",
        "21600s",
    )
    assert "npu1 is claimed by the training slurm:7" in plan["blocked_by"]
    assert {(each["device"], each["resets"], each["limit"]) for each in plan["used"]} == {
        *((name, 0, 3) for name in CHIPS),
        ("node", 0, 12),
    }
    assert [each["after"] for each in plan["steps"]] == ["0s", "5s", "5s", None, None]
    assert shown.out.splitlines()[0] == f"reset together: {', '.join(plan['devices'])}"
    assert f"(pid {os.getpid()}" in shown.out
    assert "  after 5 s:   the driver resets all 8 together\n" in shown.out
    assert (status(nodeagent)["seq"], status(nodeagent)["actions"]) == (before, [])


def test_a_reset_that_is_ordered_holds_its_group_until_it_is_refused(
    patient: Acting, nodeagent: Nodeagent
) -> None:
    ordered = nodeagent("reset", "npu3", "--reason", "bench", "-o", "json").json[0]
    action = the_action(nodeagent)
    holds = status(nodeagent)["holds"]
    isolated = verdicts(nodeagent)
    shown = nodeagent("status").out
    refused = nodeagent("approve", action["id"], "--refuse", "--reason", "not now")

    assert ordered["action_id"] == action["id"] == ordered["action"]["id"]
    assert (action["kind"], action["mode"], action["stage"]) == ("reset", "ask", "announced")
    assert (action["who"], action["reason"], action["approved"]) == ("uid:0", "bench", True)
    assert {(each["kind"], each["owner"]) for each in holds} == {("reset_pending", "nodeagent")}
    assert sorted(each["device"] for each in holds) == CHIPS
    assert isolated == {"ISOLATE"}
    assert "\nreset of npu3 (and with it npu0-2, npu4-7) ordered by uid:0 (bench) begins at " in shown
    assert "\nnpu0-2, npu4-7: isolated until the reset of npu3 is over\n" in shown
    assert (refused.status, refused.out) == (0, f"refused {action['id']}\n")
    assert patient.stream.until("action_finished")
    assert verdicts(nodeagent) == {"ALLOW"}
    assert status(nodeagent)["actions"] == []
    finished = nodeagent("events", "--kind", "action_finished").out
    assert (
        f"reset of {', '.join(action['devices'])}; refused: refused by uid:0: not now [mode ask]" in finished
    )


def test_a_fault_proposes_a_reset_and_an_operator_approves_it_once(
    patient: Acting, nodeagent: Nodeagent
) -> None:
    patient.chips.raise_code("npu6", RESET_NEEDED, severity=2)
    patient.stream.until("action_proposed")
    proposed = the_action(nodeagent)
    approved = nodeagent("approve", proposed["id"], "-o", "json").json[0]
    again = nodeagent("approve", proposed["id"])

    assert (proposed["codes"], proposed["who"], proposed["approved"]) == (["80E18005"], "", False)
    assert proposed["condition_ids"] == [each["id"] for each in status(nodeagent)["conditions"]]
    assert (approved["approved"], approved["action"]["approved"]) == (True, True)
    assert (again.status, again.err) == (1, f"nodeagent: action_id: {proposed['id']} is approved already\n")
    assert "approved by uid:0 [mode ask]" in nodeagent("events").out


def test_an_action_is_found_by_any_device_of_it(patient: Acting, nodeagent: Nodeagent) -> None:
    none = nodeagent("approve", "npu3")
    patient.chips.raise_code("npu6", RESET_NEEDED, severity=2)
    patient.stream.until("action_proposed")
    action_id = the_action(nodeagent)["id"]
    approved = nodeagent("approve", "npu3", "-o", "json").json[0]
    refused = nodeagent("approve", "npu6", "--refuse")
    entry = nodeagent("audit", "-n", "2", "-o", "json").json[-1]

    assert (none.status, none.err) == (
        1,
        "nodeagent: action_id: no reset is pending on 'npu3'; pending: none\n",
    )
    assert (approved["action_id"], approved["approved"], approved["durable"]) == (action_id, True, True)
    assert (refused.status, refused.out) == (0, f"refused {action_id}\n")
    assert (entry["target"], entry["result"]) == ("npu6", f"refused {action_id}")


def test_one_that_no_one_approves_shows_until_when_and_how_to(node: Acting, nodeagent: Nodeagent) -> None:
    node.chips.raise_code("npu6", RESET_NEEDED, severity=2)
    node.stream.until("action_proposed")
    node.stream.until("waits for an operator")
    action = the_action(nodeagent)
    shown = nodeagent("status").out

    assert action["stage"] == "asking"
    assert re.search(r"^npu6 +ISOLATE .* reset: approve it ", shown, re.MULTILINE)
    assert re.search(
        r" is refused unless approved before [\dT:.-]+Z: nodeagent approve npu6$", shown, re.MULTILINE
    )


def test_what_is_reported_of_a_reset_fits_a_terminal_and_keeps_its_id_whole(
    patient: Acting, nodeagent: Nodeagent
) -> None:
    rehearsed_there = on_terminal("reset", "npu3", "--dry-run")
    nodeagent("reset", "npu3", "--reason", "bench")
    action_id = the_action(nodeagent)["id"]
    shown = [COLOUR.sub("", on_terminal(command)) for command in ("status", "events", "audit")]
    lines = [line for each in (rehearsed_there, *shown) for line in each.splitlines()]

    assert [line for line in lines if len(line) > 80] == []
    assert any(action_id in line for line in shown[-1].splitlines())


def test_what_cannot_be_reset_is_reported_why(node: Acting, nodeagent: Nodeagent) -> None:
    said = {
        device: (ran := nodeagent("reset", device, "--reason", "bench"), ran.status, ran.err)[1:]
        for device in ("node", "npu9")
    }
    nodeagent("isolate", "npu0", "--reason", "fan swap")
    isolated = nodeagent("reset", "npu3", "--reason", "bench")
    shown = nodeagent("reset", "npu3", "--dry-run")

    assert said["node"] == (1, "nodeagent: node is not a chip: only NPUs and GPUs are reset\n")
    there = f"the nearest is npu7; there are: {', '.join(('node', *CHIPS))}"
    assert said["npu9"] == (1, f"nodeagent: device: 'npu9' is not known; {there}\n")
    why = "npu0 is isolated by alice: fan swap; clear that and release it first"
    assert (isolated.status, isolated.err) == (1, f"nodeagent: {why}\n")
    assert (shown.status, shown.out.splitlines()[-2:]) == (0, ["it would be refused:", f"    {why}"])
    assert nodeagent("reset", "npu3").status == 2


def test_an_action_that_is_not_pending_cannot_be_decided_and_those_that_are_get_named(
    patient: Acting, nodeagent: Nodeagent
) -> None:
    none = nodeagent("approve", "npu3/reset#1")
    action_id = nodeagent("reset", "npu3", "--reason", "bench", "-o", "json").json[0]["action_id"]
    other = nodeagent("approve", "npu3/reset#1")
    second = nodeagent("reset", "npu4", "--reason", "bench")

    unknown = "nodeagent: action_id: 'npu3/reset#1' is not known; "
    assert (none.status, none.err) == (1, f"{unknown}pending: none\n")
    assert (other.status, other.err) == (1, f"{unknown}pending: {action_id}\n")
    assert (second.status, second.err.startswith(f"nodeagent: {action_id} of npu3, npu0")) == (1, True)


@pytest.mark.slow
def test_one_that_is_approved_is_done_and_reported_in_full(tmp_path: Path, nodeagent: Nodeagent) -> None:
    with acting(tmp_path, more="trust_process_list = true") as node:
        node.chips.raise_code("npu6", RESET_NEEDED, severity=2)
        node.stream.until("action_proposed")
        nodeagent("approve", the_action(nodeagent)["id"], "--reason", "go on")
        node.stream.until("action_finished")
        action = the_action(nodeagent)
        finished = nodeagent("events", "--kind", "action_finished").out
        standing, resets = verdicts(nodeagent), node.chips.calls("dcmi_set_device_reset", "npu6")

    assert (action["stage"], action["result"].partition(":")[0]) == ("ended", "done")
    assert sorted(action["devices"]) == sorted(action["verified"]) == CHIPS
    assert action["proposed_at"] < action["started_at"] < action["ended_at"]
    assert "; done: verified by a poll of every member; the devices have started again (" in finished
    assert re.search(r"reset in-band at \d+\.\d s", action["report"])
    assert re.search(r" \[mode ask, started after \d+\.\d{3} s, ended after ", finished)
    assert (standing, resets) == ({"ALLOW"}, 1)


WAY_OUT = (
    'to have this one done: nodeagent reset npu3 --once --reason "..."; '
    'to have each of them done: reset.mode = "ask" or "on", and a reload'
)


@pytest.mark.parametrize(
    ("mode", "means"), [("off", ""), ("dry-run", ", so that they are only reported")], ids=["off", "dry-run"]
)
def test_where_resets_are_switched_off_each_order_shows_by_what_and_the_way_out(
    tmp_path: Path, nodeagent: Nodeagent, mode: str, means: str
) -> None:
    with acting(tmp_path, mode=mode) as node:
        node.chips.raise_code("npu3", RESET_NEEDED, severity=2)
        node.stream.until("raised")
        if mode == "dry-run":
            node.stream.until("it waits: no job hook has called")
        reset = nodeagent("reset", "npu3", "--reason", "bench")
        released = nodeagent("release", "npu3", "--reason", "bench")
        approved = nodeagent("approve", "npu3")
        rehearsed = nodeagent("reset", "npu3", "--dry-run")

    file = f"(reset.mode is in {node.node.configuration})"
    off = f'resets of ascend chips are switched off: reset.mode is "{mode}"{means}; {WAY_OUT} {file}'
    faulty = "npu3 is still faulty: 80E18005 at RestartNPU; clear it first, or use --force"
    assert (reset.status, reset.err) == (1, f"nodeagent: {off}\n")
    assert (released.status, released.err) == (1, f"nodeagent: {faulty}; a reset ends 80E18005, but {off}\n")
    assert (approved.status, approved.err.endswith(f"; {off}\n")) == (1, True)
    assert rehearsed.out.splitlines()[-1].strip() == off


def test_a_dry_run_that_waits_shows_how_to_have_it_done(tmp_path: Path, nodeagent: Nodeagent) -> None:
    with acting(tmp_path, mode="dry-run") as node:
        node.chips.raise_code("npu3", RESET_NEEDED, severity=2)
        node.stream.until("action_proposed")
        shown, standing = nodeagent("status").out, verdicts(nodeagent)

    assert "only recorded, resets are not done here (reset.mode is dry-run);" in shown
    assert ' nodeagent reset npu3 --once --reason "..." does it\n' in shown
    assert standing == {"ALLOW", "ISOLATE"}


@pytest.mark.slow
def test_one_that_is_ordered_once_in_mode_dry_run_is_done_and_reported_and_audited(
    tmp_path: Path, nodeagent: Nodeagent
) -> None:
    with acting(tmp_path, mode="dry-run", more="trust_process_list = true") as node:
        node.chips.hold("npu0", os.getpid())
        node.chips.raise_code("npu3", RESET_NEEDED, severity=2)
        node.stream.until("it waits: npu0 is used by")
        (on_paper,) = status(nodeagent)["actions"]
        plan = nodeagent("reset", "npu3", "--once", "--dry-run", "-o", "json").json[0]["plan"]
        ordered = nodeagent("reset", "npu3", "--once", "--reason", "hung")
        (action,) = status(nodeagent)["actions"]
        again = nodeagent("reset", "npu3", "--once", "--reason", "hung")
        calls_held = node.chips.calls("dcmi_set_device_reset", "npu3")
        node.chips.let_go("npu0")
        node.stream.until("done: verified")
        resets, standing = node.chips.calls("dcmi_set_device_reset", "npu3"), verdicts(nodeagent)
        events = nodeagent("events", "--kind", "action_finished").out.splitlines()
        entry = nodeagent("audit", "-n", "9", "-o", "json").json

    assert (plan["refused"], plan["once"], plan["mode"]) == ("", True, "on")
    assert any(each.startswith("npu0 is used by") for each in plan["blocked_by"])
    assert "mode: on, once, although resets are switched off\n" in ordered.out
    assert (action["mode"], action["once"], action["who"]) == ("on", True, "uid:0")
    assert (again.status, f"{action['id']} of npu3, " in again.err) == (1, True)
    assert (calls_held, resets, standing) == (0, 1, {"ALLOW"})
    superseded, done = events[-2:]
    assert f"refused: {action['id']} takes its place, ordered by uid:0: hung [mode dry-run" in superseded
    assert "; done: verified by a poll of every member; " in done
    assert ", mode on, once" in done or "[mode on, once" in done
    assert on_paper["mode"] == "dry-run"
    results = [each["result"] for each in entry if each["what"] == "ResetDevice"]
    assert f"proposed {action['id']} (on, once): hung" in results


def test_what_forbids_resets_forbids_one_that_is_ordered_once(tmp_path: Path, nodeagent: Nodeagent) -> None:
    (tmp_path / "do-not-touch").touch()
    with acting(tmp_path, mode="dry-run"):
        refused = nodeagent("reset", "npu3", "--once", "--reason", "hung")

    forbidden = f"resets are forbidden, also single ones by order: {tmp_path}/do-not-touch is there"
    said = f"nodeagent: {forbidden}; once that is over, reload the configuration\n"
    assert (refused.status, refused.err) == (1, said)
