"""An interpreter of its own for a traced run: that of the checkout, with the recorder in it.

The daemon starts its children with its own interpreter, some of them without the environment (``python -I``).
So a variable of the environment would not reach them, and a virtual environment does. The checkout's own
environment is not touched.
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.trace import recorder

LIMIT_S = 60.0
RECORDER = "nodeagent_trace_recorder"

_SITE_PACKAGES = "import sysconfig; print(sysconfig.get_path('purelib'))"
_START_LINE = "import {module}; {module}.record({folder!r}, {sources!r})"


class NotSetUp(Exception):
    """The checkout has no environment, or one that does not work."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """``root`` is the folder of the checkout; its environment is the one that ``./dev setup`` makes."""

    root: Path

    @property
    def python(self) -> Path:
        return self.root / ".venv" / "bin" / "python"

    @property
    def program(self) -> Path:
        return self.root / ".venv" / "bin" / "nodeagent"

    @property
    def sources(self) -> Path:
        return self.root / "nodeagent"

    def check(self) -> None:
        """Raises ``NotSetUp``."""
        for path in (self.sources, self.python, self.program):
            if not path.exists():
                raise NotSetUp(f"{path} is missing: run ./dev setup in {self.root}")


def make_traced(checkout: Checkout, folder: Path) -> Path:
    """The program ``nodeagent`` on a traced interpreter, below ``folder``. Raises ``NotSetUp``."""
    checkout.check()
    environment = folder / "environment"
    _run([str(checkout.python), "-m", "venv", "--without-pip", str(environment)])
    python = environment / "bin" / "python"
    own = Path(_run([str(python), "-c", _SITE_PACKAGES]))
    shared = _run([str(checkout.python), "-c", _SITE_PACKAGES])
    (own / f"{RECORDER}.py").write_bytes(Path(recorder.__file__).read_bytes())
    start = _START_LINE.format(module=RECORDER, folder=str(folder), sources=str(checkout.sources))
    (own / "trace.pth").write_text(f"import site; site.addsitedir({shared!r})\n{start}\n")
    program = environment / "bin" / "nodeagent"
    _, _, body = checkout.program.read_text().partition("\n")
    program.write_text(f"#!{python}\n{body}")
    program.chmod(0o755)
    return program


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LIMIT_S)
    except (OSError, subprocess.SubprocessError) as error:
        output = getattr(error, "stderr", None) or ""
        raise NotSetUp(f"{' '.join(command)}: {error} {output}".strip()) from error
    return done.stdout.strip()
