"""What scontrol prints of a node, in its forms, and a scontrol that does not do what it should."""

from pathlib import Path

import pytest

from nodeagent.schedulers.slurm.decide import Node
from nodeagent.schedulers.slurm.programs import NoSuchNode, RunningJob, Slurm, SlurmError, node_of, running_of
from tests.harness.configuration import ROOT

SHOWN = """NodeName=n2 Arch=x86_64 CoresPerSocket=1
   CPUAlloc=0 CPUTot=4 CPULoad=6.20
   State={state} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s
{reason}
"""


@pytest.mark.parametrize(
    ("state", "takes_work", "is_drained"),
    [
        ("IDLE", True, False),
        ("MIXED+PLANNED", True, False),
        ("ALLOCATED", True, False),
        ("IDLE~", True, False),
        ("IDLE+DRAIN", False, True),
        ("MIXED*+DRAIN", False, True),
        ("DOWN*", False, False),
        ("DOWN*+DRAIN+NOT_RESPONDING", False, True),
        ("IDLE+FAIL", False, False),
    ],
)
def test_the_state_of_a_node_is_read_in_its_forms(state: str, takes_work: bool, is_drained: bool) -> None:
    assert node_of(SHOWN.format(state=state, reason="")) == Node(takes_work=takes_work, is_drained=is_drained)


def test_a_reason_is_read_without_who_and_when() -> None:
    reason = "   Reason=80E18005 npu3 (nodeagent #7) [root@2026-11-23T19:04:50]"
    node = node_of(SHOWN.format(state="IDLE+DRAIN", reason=reason))
    assert node.reason == "80E18005 npu3 (nodeagent #7)"
    assert node.is_ours


def test_the_comment_of_a_node_is_read() -> None:
    shown = SHOWN.format(state="IDLE", reason="   Comment=nodeagent: A npu1, B npu2")
    assert node_of(shown).comment == "nodeagent: A npu1, B npu2"


def test_a_node_is_read_as_26_05_prints_it() -> None:
    printed = (ROOT / "tests/fixtures/slurm/node-26.05.4.txt").read_text()
    assert node_of(printed) == Node(
        takes_work=False,
        is_drained=True,
        reason="NA:80E18005 npu3 (nodeagent #20)",
        comment="nodeagent: 80E18005 npu3",
    )


@pytest.mark.parametrize(
    ("listed", "found"),
    [
        ("41 1000 1795000000 41\n", RunningJob(name="41", uid=1000, since_s=1795000000)),
        ("40 0 1 41_0\n41 0 1 41_1\n", RunningJob(name="41_1", uid=0, since_s=1)),
        ("41 0 1 40+1\n", RunningJob(name="40", uid=0, since_s=1)),
        ("", None),
        ("40 0 1 40\n", None),
    ],
)
def test_a_running_job_is_read_with_the_name_by_which_it_is_requeued(
    listed: str, found: RunningJob | None
) -> None:
    assert running_of(41, listed) == found


def test_a_line_of_squeue_in_another_form_is_refused() -> None:
    with pytest.raises(SlurmError, match="squeue: a line is"):
        running_of(41, "41 1000 2026-11-28T08:00:00 41\n")


def test_a_text_without_a_state_is_refused() -> None:
    with pytest.raises(SlurmError, match="the state of the node is missing"):
        node_of("Nothing to show")


def slurm(folder: Path, script: str, limit_s: float = 60.0) -> Slurm:
    program = folder / "scontrol"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return Slurm(folder, {"SLURM_CONF": "/etc/other.conf", "SECRET": "x"}, limit_s)


async def test_one_that_fails_is_an_error_in_its_own_words(tmp_path: Path) -> None:
    with pytest.raises(SlurmError, match="scontrol update: Invalid user id"):
        await slurm(tmp_path, "echo 'Invalid user id' >&2; exit 1").drain("n2", "x")


async def test_a_node_that_slurm_does_not_know_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(NoSuchNode):
        await slurm(tmp_path, "echo Node n2 not found; exit 1").node("n2")


async def test_one_that_never_answers_is_ended(tmp_path: Path) -> None:
    hung = slurm(tmp_path, f"echo $$ >{tmp_path}/pid; exec sleep 1000", limit_s=1.0)
    with pytest.raises(SlurmError, match="scontrol update: no answer for 1 s"):
        await hung.drain("n2", "x")
    assert not (Path("/proc") / (tmp_path / "pid").read_text().strip()).exists()


async def test_one_that_is_not_there_is_named_with_the_key(tmp_path: Path) -> None:
    with pytest.raises(SlurmError, match=r"scontrol: No such file or directory; programs in \[slurm\]"):
        await Slurm(tmp_path, {}).drain("n2", "x")


async def test_it_gets_the_place_of_slurm_conf_and_no_other_variable_of_ours(tmp_path: Path) -> None:
    await slurm(tmp_path, f'echo "$SLURM_CONF $SECRET" >{tmp_path}/got').drain("n2", "x")
    assert (tmp_path / "got").read_text() == "/etc/other.conf \n"


@pytest.mark.parametrize(("known", "name"), [("n1.site.example", "n1.site.example"), ("n1", "n1")])
async def test_the_whole_name_of_the_machine_counts_before_its_first_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: str, name: str
) -> None:
    """As slurmd looks for its node."""
    monkeypatch.setattr("socket.gethostname", lambda: "n1.site.example")
    program = slurm(tmp_path, f'[ "$3" != {known} ] || echo "$3"')
    assert await program.name_of_this_node() == name


@pytest.mark.parametrize(("aliases", "said"), [("n1 n2", "the nodes n1, n2"), ("", "no node")])
async def test_a_host_with_several_nodes_or_none_needs_node_name(
    tmp_path: Path, aliases: str, said: str
) -> None:
    with pytest.raises(SlurmError, match=f"{said} of the host name .*: set node_name"):
        await slurm(tmp_path, f"echo {aliases}").name_of_this_node()
