"""Which systems may report, and how fast."""

import pytest

from nodeagent.api.access.credentials import Caller, Role
from nodeagent.api.control.senders import Reporter, Senders
from nodeagent.api.refusal import Refusal, Status
from nodeagent.config.public import PublicConfig, SenderConfig
from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import Reported

CHECKER = Caller(
    identity="certificate:checker.example.org", role=Role.REPORTER, who="certificate checker.example.org"
)
OTHER = Caller(
    identity="certificate:other.example.org", role=Role.REPORTER, who="certificate other.example.org"
)
ROOT = Caller(identity="uid:0", role=Role.OPERATOR, who="uid 0 pid 1")


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def admitted(senders: Senders, sender: str, most: int = 1000) -> int:
    """How many messages at once."""
    for count in range(most):
        try:
            senders.admit(sender, CHECKER)
        except Refusal:
            return count
    return most


def test_a_sender_has_a_burst_of_a_hundred_and_one_more_each_second(clock: Clock) -> None:
    senders = Senders(PublicConfig(), clock)
    assert admitted(senders, "CCAE") == 100
    clock.now_s += 0.5
    assert admitted(senders, "CCAE") == 0
    clock.now_s += 0.5
    assert admitted(senders, "CCAE") == 1
    clock.now_s += 30
    assert admitted(senders, "CCAE") == 30
    clock.now_s += 100_000
    assert admitted(senders, "CCAE") == 100


def test_each_sender_has_its_own(clock: Clock) -> None:
    senders = Senders(PublicConfig(), clock)
    assert (admitted(senders, "CCAE"), admitted(senders, "pingmesh")) == (100, 100)


def test_who_is_too_fast_hears_when_to_try_again_and_is_then_admitted(clock: Clock) -> None:
    senders = Senders(PublicConfig(burst=2, refill_ns=10 * SECOND_NS), clock)
    admitted(senders, "CCAE")
    clock.now_s += 3
    with pytest.raises(Refusal) as refused:
        senders.admit("CCAE", CHECKER)
    assert (refused.value.status, refused.value.reason) == (
        Status.RESOURCE_EXHAUSTED,
        "sender: CCAE is too fast (2 messages at once, then one each 10 s); try again in 7 s",
    )
    assert refused.value.retry_after_s == pytest.approx(7.0)
    clock.now_s += 7.0
    senders.admit("CCAE", CHECKER)


def test_the_configuration_adds_senders_and_refuses_others() -> None:
    senders = Senders(
        PublicConfig(senders={"my-checker": SenderConfig(), "CCAE": SenderConfig(enabled=False)})
    )
    senders.admit("my-checker", CHECKER)
    for name, caller in (
        ("CCAE", CHECKER),
        ("", CHECKER),
        ("nobody", CHECKER),
        ("CCAE", ROOT),
        ("a b", ROOT),
    ):
        with pytest.raises(Refusal) as refused:
            senders.admit(name, caller)
        assert refused.value.status is Status.INVALID_ARGUMENT
        assert refused.value.reason == (
            f"sender: {name!r}: must be one of fd-online, pingmesh, Netmind, dpcStorage, dtfsStorage,"
            " my-checker; [public.senders.NAME] of nodeagent.toml adds one"
        )


def test_an_operator_uses_any_name_and_a_client_that_of_its_certificate() -> None:
    senders = Senders(PublicConfig(senders={"other.example.org": SenderConfig(enabled=False)}))
    assert senders.admit("nccl-test", ROOT) == Reporter(sender="nccl-test", by="uid:0", ends_all=True)
    assert senders.admit("checker.example.org", CHECKER) == Reporter(
        sender="checker.example.org", by=CHECKER.identity, ends_all=False
    )
    for name, caller in (("checker.example.org", OTHER), ("other.example.org", OTHER)):
        with pytest.raises(Refusal, match="must be one of CCAE"):
            senders.admit(name, caller)


def test_names_that_are_not_configured_share_what_an_operator_may_send(clock: Clock) -> None:
    senders = Senders(PublicConfig(burst=2), clock)
    senders.admit("one", ROOT)
    senders.admit("another", ROOT)
    with pytest.raises(Refusal, match="a-third is too fast"):
        senders.admit("a-third", ROOT)
    assert admitted(senders, "checker.example.org") == 2
    senders.accepted("one", [Reported.TAKEN])
    assert dict(senders.faults) == {("(unknown)", "taken"): 1}


def test_the_reporter_depends_on_whether_the_name_is_reserved() -> None:
    own = SenderConfig(certificates=("checker.example.org",))
    senders = Senders(PublicConfig(senders={"my-checker": own}))
    assert senders.admit("my-checker", CHECKER) == Reporter(sender="my-checker", by="", ends_all=True)
    assert senders.admit("CCAE", CHECKER) == Reporter(sender="CCAE", by=CHECKER.identity, ends_all=False)
    assert senders.admit("CCAE", ROOT) == Reporter(sender="CCAE", by="uid:0", ends_all=True)


def test_names_that_are_none_of_ours_are_counted_as_one() -> None:
    senders = Senders(PublicConfig())
    for name in ("a", "b"):
        senders.refused(name, Status.INVALID_ARGUMENT)
    assert senders.messages == {("(unknown)", "invalid_argument"): 2}


def test_a_sender_may_be_kept_for_those_with_certain_certificates() -> None:
    own = SenderConfig(certificates=("checker.example.org",))
    senders = Senders(PublicConfig(senders={"my-checker": own}))
    senders.admit("my-checker", CHECKER)
    senders.admit("my-checker", ROOT)
    with pytest.raises(Refusal) as refused:
        senders.admit("my-checker", OTHER)
    assert refused.value.status is Status.PERMISSION_DENIED
    assert refused.value.reason == (
        "sender: certificate other.example.org may not report as my-checker;"
        " public.senders.my-checker.certificates has checker.example.org"
    )
    senders.admit("CCAE", OTHER)
