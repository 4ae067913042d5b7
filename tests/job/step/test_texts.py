"""What is said to Slurm and to the nodes: command lines, environments, files."""

from pathlib import Path

import pytest

from nodeagent.job.codec import CodecError
from nodeagent.job.model import Counts, RunReason
from nodeagent.job.policy.arguments import Arguments, parse
from nodeagent.job.session.values import HangStage
from nodeagent.job.step import arguments, slurm
from nodeagent.job.step.folder import Record, StepFolder, decode, encode
from nodeagent.job.step.values import Allocated, NodeOutcome, RunPlan
from nodeagent.job.step.whole_job_hang import JobHangFinding, NodeHangReport

OF_A_BATCH_SCRIPT = {
    "SLURM_JOB_NODELIST": "n[1-3]",
    "SLURM_NODELIST": "n[1-3]",
    "SLURM_NNODES": "3",
    "SLURM_JOB_NUM_NODES": "3",
    "SLURM_NTASKS": "3",
    "SLURM_NTASKS_PER_NODE": "1",
    "SLURM_TASKS_PER_NODE": "1(x3)",
    "SLURM_NPROCS": "3",
    "SLURM_JOB_CPUS_PER_NODE": "4(x3)",
    "SLURM_GPUS": "24",
    "SLURM_GPUS_PER_TASK": "1",
    "SLURM_NO_KILL": "1",
    "SQUEUE_STATES": "PENDING",
    "SLURM_CLUSTERS": "all",
    "SLURM_CPUS_PER_TASK": "2",
    "SRUN_CPUS_PER_TASK": "2",
    "SLURM_CPUS_PER_GPU": "2",
    "SLURM_CPUS_ON_NODE": "4",
    "SLURM_EXACT": "1",
    "SLURM_HINT": "nomultithread",
    "SLURM_THREADS_PER_CORE": "1",
    "SLURM_NTASKS_PER_GPU": "1",
    "SLURM_NTASKS_PER_SOCKET": "1",
    "SLURM_TRES_PER_TASK": "cpu=2",
    "SLURM_TRES_BIND": "gres/gpu:closest",
    "SLURM_GPU_BIND": "closest",
    "SLURM_GPUS_PER_NODE": "8",
    "SLURM_GRES": "gpu:1",
    "SLURM_CPU_BIND": "cores",
    "SLURM_MEM_BIND": "local",
    "SLURM_DISTRIBUTION": "cyclic",
    "SLURM_EXCLUSIVE": "user",
    "SLURM_OVERCOMMIT": "1",
    "SLURM_EXPORT_ENV": "NONE",
    "SLURM_JOB_NODELIST_HET_GROUP_0": "n1",
    "SLURM_OF_A_LATER_VERSION": "1",
    "SBATCH_CPUS_PER_TASK": "2",
}
KEPT = {
    "SLURM_JOB_ID": "7",
    "SLURM_JOB_SLUID": "sEKNKTV3WPV500",
    "SLURM_CONF": "/c",
    "SLURM_RESTART_COUNT": "1",
    "SLURM_ARRAY_TASK_ID": "3",
    "SLURM_HET_SIZE": "2",
    "SLURM_MEM_PER_NODE": "1",
    "SLURM_SPANK_pyxis": "x",
    "_SLURM_SPANK_OPTION_pyxis_container_image": "x",
    "SLURMD_NODENAME": "n1",
    "PATH": "/bin",
}

RECORDS: list[Record] = [
    NodeOutcome(node="n1", run=3, status=85, next_why=RunReason.HEALED, placements=8, counts=Counts(best=7)),
    RunPlan(
        run=3,
        execution=1,
        nodes=("n1", "n2"),
        whys={"n1": RunReason.FIRST, "n2": RunReason.PEER},
        waited_s={"n1": 2.5},
    ),
    NodeHangReport(number=9, period_s=10.0, hang_time_s=1800.0, flat_s=5.5, acts=True),
    JobHangFinding(number=1, what=HangStage.CONFIRMED, why="flat", since_s=1800.0),
]


def test_sizes_of_the_allocation_are_taken_from_the_environment() -> None:
    """With them Slurm makes no step on fewer nodes, or one with the processors of one task."""
    assert slurm.environment({**OF_A_BATCH_SCRIPT, **KEPT}) == KEPT


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("7|RUNNING|n[1,3]\n", ("RUNNING", "n[1,3]")),
        ("7|COMPLETING|n1\n", ("COMPLETING", "n1")),
        ("7|PENDING|\n", ("PENDING", "")),
        ("", ("", "")),
        ("8|PENDING|\n6|RUNNING|n2\n7|RUNNING|n1\n", ("RUNNING", "n1")),  # all tasks of an array
        ("6|RUNNING|n2\n", ("", "")),
    ],
)
def test_what_squeue_says_is_understood(answer: str, found: tuple[str, str]) -> None:
    assert slurm.state_and_list(answer, "7") == found


def test_what_squeue_never_says_is_no_answer() -> None:
    with pytest.raises(slurm.SchedulerError, match=r"lines JOB\|STATE\|NODES"):
        slurm.state_and_list("slurm_load_jobs error", "7")


def test_only_a_job_that_runs_goes_on() -> None:
    assert slurm.allocated("RUNNING", "n1\nn3\n") == Allocated(nodes=("n1", "n3"))
    assert [slurm.allocated(each, "").ends for each in ("COMPLETING", "CANCELLED", "")] == [True] * 3


def test_each_node_is_called_with_what_the_step_was_called_with() -> None:
    words = "--nodes 2 --state /s --job k --in-place --no-yields --hang restart --placements=8 --core"
    words += " --logs /l --logs-kept 3 --need-path /a --need-path /b"
    given = arguments.parse_step([*words.split(), "--", "sh", "-c", "x"])
    assert (given.nodes, given.min_nodes) == (2, None)
    again = parse(arguments.words_of_run(given.of_run, 4)[1:])
    assert again == Arguments(
        command=("sh", "-c", "x"),
        job="k",
        state="/s",
        logs="/l",
        logs_kept=3,
        core=True,
        in_step=4,
        flags={
            "in-place": "true",
            "yields": "false",
            "hang": "restart",
            "placements": "8",
            "need-path": "/a,/b",
        },
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("-- true", "--state: name a folder"),
        ("--state /s", "no COMMAND"),
        ("--state /s --nodes 0 -- true", "a whole number from 1"),
        ("--state /s --nodes 2 --min-nodes 3 -- true", "--min-nodes: at most the 2"),
        ("--state /s --in-step 3 -- true", "--in-step is of job run"),
    ],
)
def test_a_wrong_option_is_told_and_nothing_is_run(
    words: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        arguments.parse_step(words.split())
    assert ended.value.code == 78
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("record", RECORDS, ids=lambda each: type(each).__name__)
def test_what_is_written_is_read_again(record: Record) -> None:
    assert decode(type(record), encode(record)) == record  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "torn"),
        ("[]", "an object, not"),
        (encode(RECORDS[1]), "something else"),
        (encode(RECORDS[0]).replace('"version": 1', '"version": 2'), "same nodeagent on all nodes"),
        (encode(RECORDS[0]).replace('"status": 85', '"status": "x"'), "status"),
        (encode(RECORDS[0]).replace('"status": 85,', ""), "status: missing"),
    ],
)
def test_what_is_no_outcome_is_an_error(text: str, says: str) -> None:
    with pytest.raises(CodecError, match=says):
        decode(NodeOutcome, text)


def test_a_plan_with_a_reason_that_there_is_not_is_an_error() -> None:
    with pytest.raises(CodecError, match=r"^whys\.n2: one of first, "):
        decode(RunPlan, encode(RECORDS[1]).replace('"peer"', '"x"'))


def test_an_outcome_that_cannot_be_read_is_told_and_is_none(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = StepFolder(tmp_path)
    folder.put_plan(RunPlan(run=1, execution=1, nodes=("n1", "n2")))
    folder.put_outcome(NodeOutcome(node="n1", run=1, status=0))
    (tmp_path / "run-1/node-n2.json").write_text("{")
    found = [folder.outcome(1, node) for node in ("n1", "n2", "n3")]
    assert found == [NodeOutcome(node="n1", run=1, status=0), None, None]
    assert "n2.json: not JSON" in capfd.readouterr().err


def test_numbers_of_runs_of_earlier_placements_are_not_used_again(tmp_path: Path) -> None:
    folder = StepFolder(tmp_path)
    assert folder.next_run() == 1
    folder.put_plan(RunPlan(run=11, execution=1, nodes=("n1",)))
    (tmp_path / "run-x").mkdir()
    assert folder.next_run() == 12


def test_a_node_may_be_called_as_any_file_of_a_step(tmp_path: Path) -> None:
    folder = StepFolder(tmp_path)
    folder.put_plan(RunPlan(run=1, execution=1, nodes=("plan", "found-by-step")))
    folder.put_outcome(NodeOutcome(node="plan", run=1, status=0))
    assert folder.plan(1) == RunPlan(run=1, execution=1, nodes=("plan", "found-by-step"))
    assert folder.outcome(1, "plan") == NodeOutcome(node="plan", run=1, status=0)
