import pytest

from tests.job.hang.cases import Case, found_in, summary
from tests.job.hang.hangs import HANGS
from tests.job.hang.lookalikes import LOOKALIKES


@pytest.mark.parametrize("case", HANGS.cases.values(), ids=list(HANGS.cases))
def test_a_hang_is_confirmed_at_its_time(case: Case) -> None:
    assert summary(found_in(case)) == case.expected
    assert case.expected.acts_min is not None


@pytest.mark.parametrize("case", LOOKALIKES.cases.values(), ids=list(LOOKALIKES.cases))
def test_what_only_looks_like_a_hang_is_never_acted_on(case: Case) -> None:
    assert summary(found_in(case)) == case.expected
    assert case.expected.acts_min is None
