"""The command line of ``job step``: the number of nodes, the options of ``job run``, then the command.

It checks no value of the policy, and no number against the nodes of the job.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nodeagent.job.policy.arguments import Arguments, arguments_of
from nodeagent.job.policy.keys import BY_NAME, YES_NO
from nodeagent.job.policy.options import run_parser

STEP_PROG: Final = "nodeagent-job step"
_MOST_NODES: Final = 65_533
"""slurm.conf(5), MaxNodes and its like."""

_STEP_DESCRIPTION: Final = """\
In the batch script of a Slurm job with several nodes: runs COMMAND on them, each below a supervisor of its
own (job run), and runs it again in place on all nodes together if one of them asks for it. The job is done
only if every node has written so into the folder of --state. Its exit status is the command's own, or: 75 run
the job elsewhere; 87 do not run it again; 78 a bad option or policy, nothing was run."""

_STEP_OPTIONS: Final = {
    "job": "--job",
    "state": "--state",
    "policy_file": "--policy",
    "annotations_file": "--annotations",
    "progress": "--progress",
    "logs": "--logs",
    "errors": "--errors",
    "socket": "--socket",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepArguments:
    """``of_run`` is for the supervisor of each node; its command is the whole job's."""

    of_run: Arguments
    nodes: int | None = None
    min_nodes: int | None = None


def step_parser() -> argparse.ArgumentParser:
    """What is not given is not in its namespace."""
    options = run_parser(STEP_PROG, _STEP_DESCRIPTION)
    step = options.add_argument_group("nodes", "of the allocation")
    step.add_argument("--nodes", type=_count, metavar="K", help="run on K of them, the rest are spares")
    step.add_argument("--min-nodes", type=_count, metavar="N", help="go on with as few as N of them")
    return options


def parse_step(argv: Sequence[str]) -> StepArguments:
    """Raises ``SystemExit``, after it has printed why."""
    options = step_parser()
    given = vars(options.parse_args(argv))
    if "in_step" in given:
        options.error("--in-step is of job run")
    nodes, min_nodes = given.pop("nodes", None), given.pop("min_nodes", None)
    of_run = arguments_of(given, options)
    if not of_run.state:
        options.error("--state: name a folder that all nodes of the job see")
    if nodes is not None and min_nodes is not None and min_nodes > nodes:
        options.error(f"--min-nodes: at most the {nodes} of --nodes, not {min_nodes}")
    return StepArguments(of_run=of_run, nodes=nodes, min_nodes=min_nodes)


def words_of_run(of_run: Arguments, run: int) -> tuple[str, ...]:
    """The command line of the supervisor of one node, without its program."""
    argv = ["run", "--in-step", str(run)]
    for name, option in _STEP_OPTIONS.items():
        if value := getattr(of_run, name):
            argv += [option, value]
    argv += [f"--{name}" for name in ("foreground", "core") if getattr(of_run, name)]
    argv += [] if of_run.error_hook else ["--no-error-hook"]
    argv += ["--logs-kept", str(of_run.logs_kept)] if of_run.logs else []
    argv += ["--period", f"{of_run.period_s:g}"]
    for name, text in of_run.flags.items():
        key = BY_NAME[name]
        if key.form is YES_NO:
            argv.append(key.flag if text == "true" else f"--no-{key.name}")
        else:
            argv += [key.flag, text]
    return (*argv, "--", *of_run.command)


def _count(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= _MOST_NODES:
        raise argparse.ArgumentTypeError(f"a whole number from 1 to {_MOST_NODES}, not {text}")
    return int(text)
