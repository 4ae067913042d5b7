"""The options of ``job run``, as argparse reads them. Loaded only if there are any. It checks no value of the
policy.
"""

import argparse
from typing import Final, NoReturn

from nodeagent.job.model import ExitStatus
from nodeagent.job.policy.keys import KEYS, PATHS, YES_NO

PROG: Final = "nodeagent-job run"

_SHORTEST_PERIOD_S: Final = 0.05
_LONGEST_PERIOD_S: Final = 60.0
_MOST_LOGS: Final = 10_000

_DESCRIPTION: Final = """\
Runs COMMAND and watches it. Without a policy it only watches and reports to the daemon of this node; with
one it also stops the command, waits until a chip is repaired, and runs it again in place. Its exit status is
the command's own, or: 75 run the job elsewhere, this node is well; 86 run it elsewhere, this node is not; 87
do not run it again; 78 a bad option or policy, nothing was run."""


class _Formatter(argparse.HelpFormatter):
    """Has a fixed width: to ask for that of the terminal imports a module, at each start."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=100, max_help_position=32)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(ExitStatus.BAD_POLICY.value, f"nodeagent-job: {message}; see {self.prog} --help\n")


def run_parser(prog: str = PROG, description: str = _DESCRIPTION) -> argparse.ArgumentParser:
    """What is not given is not in its namespace."""
    options = _Parser(
        prog=prog,
        description=description,
        formatter_class=_Formatter,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    add = options.add_argument
    add("--job", metavar="KEY", help="name of the job, where no scheduler gives it one")
    add("--state", metavar="DIR", help="folder for the journal, the counts and the evidence of hangs")
    add("--policy", dest="policy_file", metavar="FILE", help="file with lines KEY=VALUE of the policy")
    add(
        "--annotations",
        dest="annotations_file",
        metavar="FILE",
        help="annotations of the pod as a file, or the JSON of a job",
    )
    add("--progress", metavar="PATH", help="file with the newest checkpoint's number, or pattern of names")
    add("--logs", metavar="DIR", help="keep the output of each run in this folder: run-N.out, run-N.err")
    add("--logs-kept", type=_logs_kept, metavar="N", help="number of runs to keep there (default: 20)")
    add("--errors", metavar="FILE", help="keep the standard error of all runs in this file")
    add("--socket", metavar="PATH", help="socket of the daemon")
    add("--foreground", action="store_true", help="leave the command in the session of the terminal")
    add("--core", action="store_true", help="let the command write core files")
    add(
        "--no-error-hook",
        dest="error_hook",
        action="store_false",
        help="do not note the errors of Python programs by a hook on PYTHONPATH",
    )
    add("--period", dest="period_s", type=_period_s, metavar="SECONDS", help="time between two samples")
    add("--in-step", type=int, metavar="RUN", help=argparse.SUPPRESS)  # given by ``job step`` alone
    policy = options.add_argument_group("policy", "what may be done to the job; a TIME is 90s, 5m or 2h")
    for key in KEYS:
        if key.form is YES_NO:
            policy.add_argument(key.flag, dest=key.name, action="store_const", const="true", help=key.what)
            policy.add_argument(
                f"--no-{key.name}",
                dest=key.name,
                action="store_const",
                const="false",
                help=f"not --{key.name}",
            )
        elif key.form is PATHS:
            policy.add_argument(
                key.flag,
                dest=key.name,
                metavar=key.form.shown,
                action="append",
                help=f"{key.what}; may be repeated",
            )
        else:
            policy.add_argument(key.flag, dest=key.name, metavar=key.form.shown, help=key.what)
    add("command", nargs=argparse.REMAINDER, metavar="COMMAND", help="command with its arguments, after --")
    return options


def _logs_kept(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= _MOST_LOGS:
        raise argparse.ArgumentTypeError(f"a whole number from 1 to {_MOST_LOGS}, not {text}")
    return int(text)


def _period_s(text: str) -> float:
    value = float(text)
    if not _SHORTEST_PERIOD_S <= value <= _LONGEST_PERIOD_S:
        raise argparse.ArgumentTypeError(
            f"from {_SHORTEST_PERIOD_S:g} to {_LONGEST_PERIOD_S:g} seconds, not {text}"
        )
    return value
