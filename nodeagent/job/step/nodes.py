"""Which nodes of the allocation make a run, and which are spares. Pure."""

from collections.abc import Collection, Sequence

from nodeagent.job.step.model import Wish


def needed(wish: Wish, first: int) -> tuple[int, int]:
    """(the least, the most) nodes of a run; ``first`` is how many the job had at its begin."""
    most = first if wish.nodes is None else wish.nodes
    return most if wish.at_least is None else wish.at_least, most


def chosen(
    wish: Wish,
    has: Sequence[str],
    *,
    first: int,
    before: Sequence[str] = (),
    left_out: Collection[str] = (),
    doubtful: Collection[str] = (),
) -> tuple[str, ...] | None:
    """The nodes of the next run, in the order of the allocation; None where fewer are left than are needed.

    ``has`` are those that the job has now, ``first`` is how many it had at its begin. ``before`` are those of
    the run before: they stay, for what they have prepared is there. ``left_out`` are not to be used again.
    ``doubtful`` have said nothing in the run before: a spare is better.
    """
    usable = [each for each in has if each not in left_out]
    least, most = needed(wish, first)
    if len(usable) < least:
        return None

    def rank(node: str) -> tuple[bool, bool]:
        return node in doubtful, node not in before

    best = sorted(usable, key=rank)[:most]
    return tuple(each for each in usable if each in best)
