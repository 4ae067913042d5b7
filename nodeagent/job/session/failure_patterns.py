"""What the texts of failures mean: rows of data, each with the source of its text.

The first row that fits gives the kind, and rows of hardware come first: a chip that breaks makes errors of
all kinds. A row fits if all that it names fits. None names a status alone: torchrun ends with 1 after a
ValueError and after an abort alike. What no row knows is unknown, and so is what may be either, as a run that
is out of memory.
"""

import re
import signal
from dataclasses import dataclass
from typing import Final

from nodeagent.job.model import FailureKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitRow:
    """``error_types`` are names of exceptions, without their modules; ``text`` is searched for in the error's
    own line, or in everything that was written (``anywhere``).
    """

    kind: FailureKind
    source: str
    error_types: frozenset[str] = frozenset()
    text: re.Pattern[str] | None = None
    anywhere: bool = False
    status: int | None = None
    signal: int | None = None


_CUDA: Final = (
    "CUDA Runtime API, Error Handling (cudaGetErrorString); texts as in huggingface/accelerate#1192"
)
_TORCH_NPU: Final = "Ascend/pytorch, torch_npu/csrc/core/npu/NPUQueue.cpp, deviceErrorMap"
_NCCL: Final = "NVIDIA/nccl, src/init.cc, ncclGetErrorString"
_COMPILERS: Final = frozenset({"BackendCompilerFailed", "InductorError", "LoweringException", "Unsupported"})
_PYTHON: Final = "Python, Built-in Exceptions; not retried: Cerebras, Automatic Job Restart, Limitations"

ROWS: Final = (
    # ------------------------------------------------------------------ hardware
    ExitRow(
        kind=FailureKind.HARDWARE,
        source=_CUDA,
        text=re.compile(r"uncorrectable (ECC|NVLink) error"),
        anywhere=True,
    ),
    ExitRow(
        kind=FailureKind.HARDWARE,
        source=_TORCH_NPU,
        text=re.compile(r"\b(UCE ERROR|HBM MULTI BIT ECC ERROR|SUSPECT MEM ERROR|HCCS LINK ERROR)\b"),
        anywhere=True,
    ),
    # ------------------------------------------------------------------ killed, whatever was written before
    ExitRow(
        kind=FailureKind.TRANSIENT,
        source="signal(7): by the kernel for want of memory, or by somebody",
        signal=int(signal.SIGKILL),
    ),
    # ------------------------------------------------------------------ the user's by type, not by text
    ExitRow(
        kind=FailureKind.UNKNOWN,
        source="pytorch/pytorch, ProcessGroupNCCL.cpp and torch/cuda/__init__.py: the chip may have gone",
        error_types=frozenset({"ValueError", "AssertionError"}),
        text=re.compile(r"no GPUs found|Invalid device id"),
    ),
    ExitRow(
        kind=FailureKind.UNKNOWN,
        source="NVIDIA/Megatron-LM#780: a NaN that was not there again from the same checkpoint",
        error_types=frozenset({"ValueError", "AssertionError"}),
        text=re.compile(r"\bNaNs?\b", re.IGNORECASE),
    ),
    ExitRow(
        kind=FailureKind.UNKNOWN,
        source="CPython, Modules/mmapmodule.c: another node may still be writing the file",
        error_types=frozenset({"ValueError"}),
        text=re.compile(r"mmap length is greater than file size|cannot mmap an empty file"),
    ),
    ExitRow(
        kind=FailureKind.TRANSIENT,
        source="huggingface/transformers, file_utils.py, get_from_cache; as in THUDM/P-tuning-v2#81",
        error_types=frozenset({"ValueError"}),
        text=re.compile(r"^ValueError: Connection error, "),
    ),
    # ------------------------------------------------------------------ the user's, by the type alone
    ExitRow(
        kind=FailureKind.USER,
        source=_PYTHON,
        error_types=frozenset(
            {
                "AssertionError",
                "AttributeError",
                "IndentationError",
                "KeyError",
                "ModuleNotFoundError",
                "NameError",
                "NotImplementedError",
                "SyntaxError",
                "TabError",
                "TypeError",
                "UnboundLocalError",
                "ValueError",
            }
        ),
    ),
    # ------------------------------------------------------------------ transient
    ExitRow(
        kind=FailureKind.TRANSIENT,
        source=_TORCH_NPU,
        text=re.compile(r"\b(HCCL OP RETRY FAILED|SUSPECT REMOTE ERROR)\b"),
    ),
    ExitRow(
        kind=FailureKind.TRANSIENT,
        source="CANN, Troubleshooting, EI0002 and EI0006; texts as in vllm-project/vllm-ascend#1443, #486",
        text=re.compile(r"\bEI000[26]\b|Notify register times out|Getting socket times out"),
    ),
    ExitRow(
        kind=FailureKind.TRANSIENT,
        source=_NCCL,
        text=re.compile(r"unhandled system error|remote process exited or there was a network error"),
    ),
    ExitRow(
        kind=FailureKind.TRANSIENT,
        source="pytorch/pytorch, torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, checkTimeout",
        text=re.compile(r"Watchdog caught collective operation timeout"),
    ),
    ExitRow(
        kind=FailureKind.TRANSIENT,
        source="pytorch/gloo, gloo/transport/tcp/pair.cc",
        text=re.compile(r"\[.*gloo.*\].*(Connection (closed|reset) by peer|Timed out waiting)"),
    ),
    ExitRow(
        kind=FailureKind.TRANSIENT,
        source="pytorch/pytorch, torch/distributed/__init__.py and elastic/rendezvous/api.py",
        error_types=frozenset(
            {
                "DistStoreError",
                "DistNetworkError",
                "RendezvousTimeoutError",
                "RendezvousConnectionError",
            }
        ),
    ),
    ExitRow(
        kind=FailureKind.TRANSIENT,
        source="Python, Built-in Exceptions, OS exceptions",
        error_types=frozenset(
            {
                "ConnectionResetError",
                "ConnectionRefusedError",
                "ConnectionAbortedError",
                "BrokenPipeError",
                "TimeoutError",
            }
        ),
    ),
    ExitRow(
        kind=FailureKind.TRANSIENT,
        source="psf/requests, exceptions.py; urllib3, exceptions.py; Python, socket and http.client",
        error_types=frozenset(
            {
                "ChunkedEncodingError",
                "ConnectTimeout",
                "ConnectTimeoutError",
                "ConnectionError",
                "IncompleteRead",
                "MaxRetryError",
                "NameResolutionError",
                "NewConnectionError",
                "ProtocolError",
                "ReadTimeout",
                "ReadTimeoutError",
                "RemoteDisconnected",
                "gaierror",
            }
        ),
    ),
    ExitRow(
        kind=FailureKind.TRANSIENT,
        source="glibc, strerror(3) ESTALE and gai_strerror(3) EAI_AGAIN",
        text=re.compile(r"Stale file handle|Temporary failure in name resolution"),
    ),
    # ------------------------------------------------------------------ the user's, by the text
    ExitRow(
        kind=FailureKind.USER,
        source="CPython, Python/ceval.c, import_from",
        error_types=frozenset({"ImportError"}),
        text=re.compile(r"cannot import name"),
    ),
    ExitRow(
        kind=FailureKind.UNKNOWN,
        source="pytorch/pytorch#134384, #173679: ranks share a cache on the disk; and what is out of memory",
        error_types=_COMPILERS,
        text=re.compile(r"Errno|out of memory|CUDA error|OSError|FileNotFoundError|CalledProcessError"),
    ),
    ExitRow(
        kind=FailureKind.USER,
        source="pytorch/pytorch, torch/_dynamo/exc.py and torch/_inductor/exc.py: it does not compile",
        error_types=_COMPILERS,
    ),
    ExitRow(
        kind=FailureKind.USER,
        source="CANN, Troubleshooting, EI0004: the rank table is not valid",
        text=re.compile(r"\bEI0004\b"),
    ),
    ExitRow(
        kind=FailureKind.USER,
        source="Python, argparse: ArgumentParser.error ends with 2",
        status=2,
        text=re.compile(r"^usage: [\s\S]*?^\S+: error: ", re.MULTILINE),
        anywhere=True,
    ),
    ExitRow(
        kind=FailureKind.USER,
        source="bash(1), EXIT STATUS: 127, and its message",
        status=127,
        text=re.compile(r": (command )?not found$", re.MULTILINE),
        anywhere=True,
    ),
)
