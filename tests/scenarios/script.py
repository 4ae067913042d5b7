"""The form of a scenario: blocks of commands, a rule of dashes, then their output. Parses and rewrites it.

    # Comments stand anywhere before the commands of a block.
    81078603 on npu0 occurs
    ----
    their output

A block ends at an empty line. It knows no command: that is the stage's.
"""

from collections.abc import Callable
from dataclasses import dataclass

RULE = "----"


@dataclass(frozen=True, slots=True)
class Block:
    """``comments`` as written, ``commands`` one a line, ``output`` as it should be."""

    comments: tuple[str, ...]
    commands: tuple[str, ...]
    output: tuple[str, ...]

    def __str__(self) -> str:
        lines = [*self.comments, *self.commands]
        if self.commands:
            lines += [RULE, *self.output]
        return "\n".join(lines)


def parse(text: str) -> list[Block]:
    """Raises ValueError for a block of commands without a rule of dashes."""
    blocks = []
    for part in text.strip().split("\n\n"):
        lines = part.splitlines()
        comments = tuple(line for line in lines if line.startswith("#"))
        rest = [line for line in lines if not line.startswith("#")]
        if rest and RULE not in rest:
            raise ValueError(f"no {RULE} after {rest[-1]!r}")
        end = rest.index(RULE) if rest else 0
        blocks.append(Block(comments, tuple(rest[:end]), tuple(rest[end + 1 :])))
    return blocks


def performed(text: str, perform: Callable[[str], list[str]]) -> str:
    """The text with the output that its commands give now."""
    blocks = []
    for block in parse(text):
        lines = [line for command in block.commands for line in perform(command)]
        blocks.append(Block(block.comments, block.commands, tuple(lines)))
    return "\n\n".join(str(block) for block in blocks) + "\n"
