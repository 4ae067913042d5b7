"""What a GPU does not answer, in words that fit, and only once it has lasted."""

from nodeagent.drivers.nvidia.gpu import LASTING, MAX_TEXT, Lasting, Unanswered
from nodeagent.drivers.nvidia.nvml.baseline import Question


def test_what_comes_and_goes_is_not_shown() -> None:
    lasting = Lasting()
    for _ in range(10):
        assert lasting.see({"a": "UNKNOWN"}) == {}
        assert lasting.see({}) == {}


def test_what_lasts_is_shown_until_it_has_been_away_as_long() -> None:
    lasting = Lasting()
    seen = [dict(lasting.see({"a": "UNKNOWN"})) for _ in range(LASTING)]
    assert seen == [{}] * (LASTING - 1) + [{"a": "UNKNOWN"}]
    away = [dict(lasting.see({})) for _ in range(LASTING)]
    assert away == [{"a": "UNKNOWN"}] * (LASTING - 1) + [{}]


def shown(questions: dict[Question, int]) -> str:
    unanswered = Unanswered()
    changes = [unanswered.see(questions, []) for _ in range(LASTING)]
    assert changes == [False] * (LASTING - 1) + [True]
    return unanswered.attributes["unanswered"]


def test_the_same_question_about_many_links_is_one() -> None:
    questions: dict[Question, int] = {("field", 165, link): 3 for link in range(18)}
    assert shown(questions) == "NVLINK_GET_STATE (x18) NOT_SUPPORTED"
    assert shown({("field", 165, 3): 3, ("nvmlDeviceGetClockInfo", 1): 999}) == (
        "NVLINK_GET_STATE/3 NOT_SUPPORTED, nvmlDeviceGetClockInfo/1 UNKNOWN"
    )


def test_many_questions_are_cut_to_what_an_attribute_may_hold() -> None:
    text = shown({(f"nvmlDeviceGetNumber{number:02}",): 4 for number in range(40)})
    assert len(text) <= MAX_TEXT
    assert text.startswith("nvmlDeviceGetNumber00 NO_PERMISSION, ")
    assert text.endswith(" more")
