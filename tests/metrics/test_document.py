"""``docs/metrics.md`` lists every metric, as the code has it."""

from tests.metrics.reference import BEGIN, DOCUMENT, END, written


def test_the_document_lists_each_metric_with_type_and_meaning() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert (text.count(BEGIN), text.count(END)) == (1, 1)
    assert text == written(text), "write it again: python -m tests.metrics.reference"
