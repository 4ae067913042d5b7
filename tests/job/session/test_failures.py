"""What is known of a failure, from what torch, Python, C++ and the vendors' libraries write."""

import signal
from pathlib import Path

import pytest

from nodeagent.job.model import FailureKind, KnownFailure
from nodeagent.job.session.failure_patterns import ROWS
from nodeagent.job.session.failures import Raised, known, signature_of
from nodeagent.job.session.values import RunFailure

FIXTURES = Path(__file__).parents[2] / "fixtures"


def _traceback(error: str, prefix: str = "") -> str:
    lines = (
        "Traceback (most recent call last):",
        '  File "train.py", line 7, in <module>',
        "    main()",
        error,
    )
    return "".join(f"{prefix}{line}\n" for line in lines)


CHILD_FAILED = _traceback("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ") + (
    "============================================================\n"
    "train.py FAILED\n"
    "Root Cause (first observed failure):\n"
    "[0]:\n"
    "  rank      : 1 (local_rank: 1)\n"
    "  exitcode  : %s\n"
    "  error_file: <N/A>\n"
    "  traceback : %s\n"
)
RAISED = CHILD_FAILED % (
    "1 (pid: 90)",
    "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html",
)
ABORTED = CHILD_FAILED % ("-6 (pid: 90)", "Signal 6 (SIGABRT) received by PID 90")


def _by_tail(tail: str, status: int = 1) -> KnownFailure:
    return known(RunFailure(status=status, tail=tail))


@pytest.mark.parametrize("status", [1, 2, 3, 127, 255])
def test_a_status_alone_means_nothing(status: int) -> None:
    assert known(RunFailure(status=status)) == KnownFailure(kind=FailureKind.UNKNOWN, signature="", line="")


def test_no_row_judges_by_a_status_alone() -> None:
    assert [row for row in ROWS if row.status is not None and row.text is None] == []


def test_each_row_names_its_source() -> None:
    assert [row for row in ROWS if not row.source] == []


# ---------------------------------------------------------------------- tracebacks


def test_a_value_error_is_the_users_and_its_line_is_named() -> None:
    found = _by_tail(_traceback("ValueError: hidden size 100 is not a multiple of 64"))
    assert found == KnownFailure(
        kind=FailureKind.USER,
        signature="ValueError: hidden size 100 is not a multiple of 64",
        line="ValueError: hidden size 100 is not a multiple of 64",
    )


def test_the_cause_is_found_below_torchruns_own_error() -> None:
    tail = _traceback("ValueError: bad", "[rank1]: ") + RAISED
    assert _by_tail(tail).line == "ValueError: bad"


def test_torchrun_ends_with_one_after_an_abort_too() -> None:
    handled = _traceback("ValueError: handled long ago")
    assert _by_tail(handled + ABORTED) == KnownFailure()


def test_what_was_handled_before_a_signal_is_not_the_cause() -> None:
    failure = RunFailure(signal=signal.SIGSEGV, tail=_traceback("ValueError: handled long ago"))
    assert known(failure) == KnownFailure()


@pytest.mark.parametrize(
    ("recorded", "known_of_it"),
    [
        ("value", ("user", "ValueError: hidden size 100 is not a multiple of 64")),
        ("abort", ("unknown", "")),
        ("kill", ("unknown", "")),
    ],
)
def test_what_torchrun_really_writes(recorded: str, known_of_it: tuple[str, str]) -> None:
    """torchrun of torch 2.13 with two ranks of gloo. Both have handled a ValueError, then rank 1 raises one,
    aborts, or is killed; rank 0 loses its peer. It ended with status 1 each time.
    """
    tail = (FIXTURES / "job_exits" / f"torchrun_{recorded}.err").read_text()
    found = _by_tail(tail)
    assert (found.kind.value, found.line) == known_of_it


def test_of_a_chain_of_exceptions_the_last_was_raised() -> None:
    tail = (
        _traceback("KeyError: 'lr'")
        + "\nThe above exception was the direct cause of the following exception:\n\n"
        + _traceback("ConfigError: no learning rate")
    )
    assert _by_tail(tail) == KnownFailure(
        signature="ConfigError: no learning rate", line="ConfigError: no learning rate"
    )


HANDLED = "\nDuring handling of the above exception, another exception occurred:\n\n"


def test_what_was_handled_when_the_network_failed_is_not_the_cause() -> None:
    tail = _traceback("KeyError: 'shard-7'") + HANDLED + _traceback("ConnectionResetError: [Errno 104]")
    assert _by_tail(tail) == KnownFailure(
        kind=FailureKind.TRANSIENT,
        signature="ConnectionResetError: [Errno 104]",
        line="ConnectionResetError: [Errno 104]",
    )


def test_an_error_that_comes_of_the_network_may_pass_whatever_its_type() -> None:
    tail = (
        _traceback("socket.gaierror: [Errno -3] Temporary failure in name resolution")
        + HANDLED
        + _traceback("urllib3.exceptions.MaxRetryError: HTTPSConnectionPool(host='store', port=443)")
        + HANDLED
        + _traceback("TypeError: 'NoneType' object is not subscriptable")
    )
    assert _by_tail(tail).kind is FailureKind.TRANSIENT


@pytest.mark.parametrize(
    "before",
    [
        "Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7feb4a51aba8>",
        "Exception in thread Thread-3 (_pin_memory_loop):",
        "--- Logging error ---",
        "Error in atexit._run_exitfuncs:",
        "Task exception was never retrieved\nfuture: <Task finished name='Task-2' coro=<push()>>",
    ],
)
def test_a_traceback_that_ended_no_process_is_not_the_cause(before: str) -> None:
    """Interpreters that end write such lines after the error itself: pytorch/pytorch#13670, #83791."""
    raised = _traceback("ConnectionResetError: [Errno 104] Connection reset by peer")
    passed_over = f"{before}\n" + _traceback("AttributeError: 'NoneType' object has no attribute 'get'")
    assert _by_tail(raised + passed_over).kind is FailureKind.TRANSIENT
    assert _by_tail(passed_over) == KnownFailure()


def test_a_traceback_that_was_logged_before_the_last_was_handled() -> None:
    logged = "WARNING sample 17 is left out\n" + _traceback("ValueError: cannot decode the image")
    tail = logged + "step 18\n" + _traceback("ConnectionResetError: [Errno 104] Connection reset by peer")
    assert _by_tail(tail).kind is FailureKind.TRANSIENT


def test_a_rank_that_only_lost_its_peer_is_not_the_cause() -> None:
    tail = (
        _traceback("AssertionError: vocabulary of 0 words", "[rank0]: ")
        + _traceback("ConnectionResetError: [Errno 104] Connection reset by peer", "[rank1]: ")
        + RAISED
    )
    found = _by_tail(tail)
    assert (found.kind, found.line) == (FailureKind.USER, "AssertionError: vocabulary of 0 words")


def test_ranks_that_write_at_once_are_told_apart_by_their_prefix() -> None:
    one, two = (_traceback(f"ValueError: of {name}", f"[default{name}]:").splitlines() for name in (0, 1))
    tail = "\n".join(line for pair in zip(one, two, strict=True) for line in pair)
    assert _by_tail(tail).line == "ValueError: of 1"


def test_an_exception_group_is_read_at_its_head() -> None:
    tail = (
        "  + Exception Group Traceback (most recent call last):\n"
        "  | ExceptionGroup: two (2 sub-exceptions)\n" + _traceback("RuntimeError: the pool has failed")
    )
    assert _by_tail(tail).line == "RuntimeError: the pool has failed"


# ---------------------------------------------------------------------- texts of vendors and libraries

HCCL_TIMEOUT = """\
RuntimeError: InnerRunOpApi:torch_npu/csrc/framework/OpParamMaker.cpp:281 OPS function error: HcclAllreduce
[ERROR] 2025-04-08-18:07:20 (PID:1292363, Device:1, RankID:1) ERR01100 OPS call acl api failed.
EI0006: [PID: 1292363] 2025-04-08-18:07:20.444.436 Getting socket times out."""

TEXTS = (
    ("RuntimeError: CUDA error: uncorrectable ECC error encountered", FailureKind.HARDWARE),
    (
        "RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution",
        FailureKind.HARDWARE,
    ),
    ("RuntimeError: UCE ERROR", FailureKind.HARDWARE),
    ("RuntimeError: NPU function error: HBM MULTI BIT ECC ERROR, error code is 507054", FailureKind.HARDWARE),
    ("RuntimeError: HCCL OP RETRY FAILED", FailureKind.TRANSIENT),
    (HCCL_TIMEOUT, FailureKind.TRANSIENT),
    (
        "torch.distributed.DistBackendError: NCCL error in: a.cpp:1333, unhandled system error",
        FailureKind.TRANSIENT,
    ),
    (
        "RuntimeError: [/src/gloo/transport/tcp/pair.cc:534] Connection closed by peer [::1]:3012",
        FailureKind.TRANSIENT,
    ),
    (
        "torch.distributed.DistStoreError: Timed out after 301 seconds waiting for clients. 1/2",
        FailureKind.TRANSIENT,
    ),
    ("OSError: [Errno 116] Stale file handle: '/data/train.idx'", FailureKind.TRANSIENT),
    ("ModuleNotFoundError: No module named 'megatron'", FailureKind.USER),
    ("ImportError: cannot import name 'flash' from 'attention'", FailureKind.USER),
    ("ImportError: libcudart.so.12: cannot open shared object file", FailureKind.UNKNOWN),
    ("torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:", FailureKind.USER),
    ("RuntimeError: EI0004: The ranktable is invalid", FailureKind.USER),
    ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", FailureKind.UNKNOWN),
    ("RuntimeError: CUDA error: device-side assert triggered", FailureKind.UNKNOWN),
    ("KeyboardInterrupt", FailureKind.UNKNOWN),
    ("ValueError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!", FailureKind.UNKNOWN),
    ("AssertionError: Invalid device id", FailureKind.UNKNOWN),
    (
        "AssertionError: Rank 11: found NaN in local grad norm in backward pass before the collective",
        FailureKind.UNKNOWN,
    ),
    ("ValueError: mmap length is greater than file size", FailureKind.UNKNOWN),
    (
        "ValueError: Connection error, and we cannot find the requested files in the cached path.",
        FailureKind.TRANSIENT,
    ),
    ("requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='store', port=443)", FailureKind.TRANSIENT),
    (
        "torch._inductor.exc.InductorError: FileNotFoundError: [Errno 2] No such file: '/tmp/c.so'",
        FailureKind.UNKNOWN,
    ),
    (
        "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\nOSError: [Errno 116] Stale",
        FailureKind.UNKNOWN,
    ),
)


@pytest.mark.parametrize(("error", "kind"), TEXTS)
def test_the_kind_of_a_text(error: str, kind: FailureKind) -> None:
    assert _by_tail(_traceback(error)).kind is kind


def test_a_chip_that_breaks_explains_errors_of_all_sorts() -> None:
    tail = _traceback("RuntimeError: CUDA error: uncorrectable ECC error encountered", "[rank0]: ")
    assert (
        _by_tail(tail + _traceback("ValueError: nan in the loss", "[rank1]: ")).kind is FailureKind.HARDWARE
    )


def test_an_abort_in_cpp_is_read() -> None:
    tail = (
        "terminate called after throwing an instance of 'c10::DistBackendError'\n"
        "  what():  [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=880)\n"
    )
    found = known(RunFailure(signal=signal.SIGABRT, tail=tail))
    assert (found.kind, found.line[:50]) == (
        FailureKind.TRANSIENT,
        "c10.DistBackendError: [Rank 3] Watchdog caught col",
    )


def test_a_run_that_was_killed_is_not_judged_by_what_it_wrote() -> None:
    failure = RunFailure(signal=signal.SIGKILL, tail=_traceback("ValueError: handled long ago"))
    assert known(failure) == KnownFailure(kind=FailureKind.TRANSIENT)


def test_wrong_arguments_are_the_users() -> None:
    tail = "usage: train.py [-h] [--lr LR]\ntrain.py: error: unrecognized arguments: --lrr 1\n"
    assert _by_tail(tail, status=2).kind is FailureKind.USER
    assert _by_tail(tail, status=1).kind is FailureKind.UNKNOWN


def test_a_command_that_the_shell_does_not_find_is_the_users() -> None:
    assert _by_tail("run.sh: line 3: torchrrun: command not found\n", status=127).kind is FailureKind.USER


# ---------------------------------------------------------------------- what torch has written of the error


def test_what_torch_has_written_goes_before_what_the_run_wrote() -> None:
    failure = RunFailure(status=1, error_type="TypeError", message="x", tail=_traceback("RuntimeError: y"))
    assert known(failure).line == "TypeError: x"


@pytest.mark.parametrize(
    "said",
    [
        Raised(error_type="", message="Signal 6 (SIGABRT) received by PID 90"),
        Raised(error_type="ChildFailedError", message="train.py FAILED"),
    ],
)
def test_torch_may_have_written_no_cause(said: Raised) -> None:
    found = known(RunFailure(status=1, error_type=said.error_type, message=said.message))
    assert (found.kind, found.signature) == (FailureKind.UNKNOWN, "")


# ---------------------------------------------------------------------- signatures

SAME = (
    ("tensor at 0x7f00aa", "tensor at 0x7f99bb"),
    ("worker (pid 123) died", "worker (pid 4567) died"),
    ("DataLoader worker (pid(s) 12) exited", "DataLoader worker (pid(s) 12) exited"),
    ("at 2026-01-01 10:00:00,123 it failed", "at 2026-02-03 11:22:33,456 it failed"),
    ("no file /tmp/tmpab12/x.bin", "no file /tmp/tmpzz99/x.bin"),
    ("tried to allocate 2.00 GiB", "tried to allocate 1.50 GiB"),
    ("no answer of 10.0.0.1:29500", "no answer of 10.0.0.1:31007"),
    ("id 8d9c3f00-1111-2222-3333-444455556666", "id 00000000-1111-2222-3333-444455556666"),
    ("the same\nline two", "the same\nanother line two"),
)

OTHER = (("step 10 is nan", "step 20 is nan"), ("no key 'a'", "no key 'b'"), ("layer3.bias", "layer4.bias"))


@pytest.mark.parametrize(("one", "two"), SAME)
def test_a_signature_is_stable_over_runs(one: str, two: str) -> None:
    first, second = (signature_of(Raised(error_type="RuntimeError", message=text)) for text in (one, two))
    assert first == second


@pytest.mark.parametrize(("one", "two"), OTHER)
def test_other_failures_have_other_signatures(one: str, two: str) -> None:
    first, second = (signature_of(Raised(error_type="RuntimeError", message=text)) for text in (one, two))
    assert first != second
