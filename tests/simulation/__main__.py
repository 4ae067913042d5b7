"""``python -m tests.simulation``: play seeds, say what was seen, or follow one seed transition by transition.

Exit status 1 where an invariant was broken; what to run again stands in the output.
"""

import argparse
import logging
import sys
import time

from tests.simulation.history import Step
from tests.simulation.lives import LIVES
from tests.simulation.run import Result, simulate
from tests.simulation.seeds import play, with_kept
from tests.simulation.table import coverage_lines
from tests.simulation.transitions import Transitions, changes, never_seen


def main() -> int:
    options = _options()
    logging.disable(logging.CRITICAL)
    if options.transitions:
        return _follow(options.seed, options.hours, options.life)
    alone = options.seed is not None
    first, last = options.seeds
    seeds = [options.seed] if alone else with_kept(first, last, options.life)
    begun_s = time.monotonic()
    results = play(seeds, options.hours, options.life)
    for line in _report(results, time.monotonic() - begun_s, options.hours, options.life):
        print(line)
    return int(any(result.broken for result in results))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--life", choices=tuple(LIVES), default="rules", help="what it is about (rules)")
    parser.add_argument("--seed", type=int, help="one seed")
    parser.add_argument(
        "--seeds", type=_range, default=(1, 20), metavar="A..B", help="all of them, kept ones first"
    )
    parser.add_argument("--hours", type=float, default=72.0, help="simulated, per seed (72)")
    parser.add_argument(
        "--transitions", action="store_true", help="print what changed in --seed, one line each"
    )
    options = parser.parse_args()
    if options.transitions and options.seed is None:
        parser.error("--transitions needs --seed N")
    return options


def _range(text: str) -> tuple[int, int]:
    first, dots, last = text.partition("..")
    if not dots or not first.isdecimal() or not last.isdecimal() or int(first) > int(last):
        raise argparse.ArgumentTypeError(f"{text!r} is no range of seeds; one reads 1..200")
    return int(first), int(last)


def _report(results: list[Result], took_s: float, hours: float, life: str) -> list[str]:
    together = Transitions()
    killed: dict[str, int] = {}
    for result in results:
        together.add(result.transitions)
        for point, times in result.killed.items():
            killed[point] = killed.get(point, 0) + times
    missing = never_seen(together, LIVES[life].kinds, LIVES[life].changes)
    lines = coverage_lines(together, missing)
    lines.append("")
    lines += [f"{times:8} x killed {point}" for point, times in sorted(killed.items())]
    turns, events = sum(one.turns for one in results), sum(one.events for one in results)
    lines.append(
        f"{len(results)} seeds of {hours:g} h in {took_s:.1f} s: {turns} turns, {events} events, "
        f"{len(LIVES[life].catalogs())} catalogs"
    )
    for result in results:
        if result.broken:
            lines.append(f"seed {result.seed}: {result.broken}")
            again = f"--life {life} --seed {result.seed} --hours {hours:g} --transitions"
            lines.append(f"    python -m tests.simulation {again}")
    if len(results) == 1:
        lines.append(f"digest {results[0].digest}")
    return lines


def _follow(seed: int, hours: float, life: str) -> int:
    begun_ns: list[int] = []

    def show(step: Step) -> None:
        begun_ns.append(step.now_ns)
        for what, (kind, was, now, cause) in changes(step):
            print(f"{_clock(step.now_ns - begun_ns[0])}  {kind:9} {what:40} {was} -> {now}  by {cause}")

    result = simulate(seed, hours, show, life=life)
    print(result.broken or f"every invariant holds; digest {result.digest}")
    return int(bool(result.broken))


def _clock(elapsed_ns: int) -> str:
    seconds, rest_ns = divmod(elapsed_ns, 10**9)
    hours, minutes = divmod(seconds // 60, 60)
    return f"{hours // 24}d {hours % 24:02}:{minutes:02}:{seconds % 60:02}.{rest_ns:09}"


if __name__ == "__main__":
    sys.exit(main())
