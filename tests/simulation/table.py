"""What the seeds together have seen, as a table for people."""

from collections import Counter
from collections.abc import Sequence

from tests.simulation.transitions import Transitions


def coverage_lines(transitions: Transitions, missing: Sequence[str], causes: int = 4) -> list[str]:
    """A line for each change of state with its count and most frequent causes, then what is missing."""
    lines = ["   count  change"]
    by_change: dict[tuple[str, str, str], Counter[str]] = {}
    for (what, was, now, cause), count in transitions.seen.items():
        by_change.setdefault((what, was, now), Counter())[cause] += count
    for (what, was, now), counted in sorted(by_change.items()):
        often = ", ".join(f"{cause} {count}" for cause, count in counted.most_common(causes))
        more = len(counted) - causes
        lines.append(
            f"{counted.total():8}  {what}: {was} -> {now}   ({often}{f', {more} more' if more > 0 else ''})"
        )
    lines += ["", "   count  event"]
    lines += [f"{count:8}  {kind}" for kind, count in sorted(transitions.kinds.items())]
    if transitions.ends:
        lines += ["", "   count  end of a reset's attempt, or of its proposal"]
        lines += [f"{count:8}  {word}" for word, count in sorted(transitions.ends.items())]
    lines += ["", "never seen: " + ("; ".join(missing) if missing else "nothing of what is expected")]
    return lines
