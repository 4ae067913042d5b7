"""Texts of a configuration that the kernel is given, or a person sees: paths, names, words of commands."""

from typing import Annotated

from msgspec import Meta

_NO_CONTROL = r"\A[^\x00-\x1f\x7f-\x9f]*\Z"

FilePath = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=4096,
        pattern=_NO_CONTROL,
        description="a path in quotes, without control characters",
    ),
]
OptionalPath = Annotated[
    str,
    Meta(
        max_length=4096,
        pattern=_NO_CONTROL,
        description='a path in quotes, without control characters, or ""',
    ),
]
ServiceUnit = Annotated[
    str,
    Meta(
        max_length=255,
        pattern=r"\A[A-Za-z0-9:_.\\@-]+\.service\Z",
        description='a list of systemd services, such as ["slurmd.service"]',
    ),
]
NodeName = Annotated[
    str,
    Meta(
        max_length=253,
        pattern=_NO_CONTROL,
        description="the node's name in quotes, without control characters",
    ),
]
Word = Annotated[str, Meta(min_length=1, max_length=4096, pattern=r"\A[^\x00]*\Z")]
"""A word of a command: any text that ``execve`` takes."""
