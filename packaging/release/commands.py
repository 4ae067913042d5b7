"""Runs the tools that a release is made with. What they say is shown only where they fail."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

_LINES_SHOWN = 15


class Refused(Exception):
    """No release is made. The text says what stands in the way, and what would be right."""


def say(text: str) -> None:
    print(f"==> {text}", file=sys.stderr, flush=True)


def run(*command: str | Path, folder: Path | None = None) -> str:
    """What the command prints. Raises Refused, with its last words, where it is missing or fails."""
    words = [os.fspath(word) for word in command]
    try:
        done = subprocess.run(
            words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise Refused(f"{error.filename} is missing; ./dev release --key installs what it needs") from error
    if done.returncode:
        said = (done.stderr + done.stdout).splitlines()[-_LINES_SHOWN:]
        raise Refused("\n    ".join((f"{shlex.join(words[:6])} ended with {done.returncode}:", *said)))
    return done.stdout
