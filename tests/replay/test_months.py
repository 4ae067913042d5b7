"""A month is read by its place; its name says which it is, where the language is known."""

import pytest

from nodeagent.replay.text_clock import months_of
from tests.replay.reading import read, said

YEARS = {
    "English": "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
    "German": "Jan Feb Mär Apr Mai Jun Jul Aug Sep Okt Nov Dez",
    "French": "janv. févr. mars avril mai juin juil. août sept. oct. nov. déc.",
    "Spanish": "ene feb mar abr may jun jul ago sep oct nov dic",
    "Portuguese": "jan fev mar abr mai jun jul ago set out nov dez",
    "Italian": "gen feb mar apr mag giu lug ago set ott nov dic",
    "Dutch": "jan feb mrt apr mei jun jul aug sep okt nov dec",
    "Norwegian": "jan. feb. mars april mai juni juli aug. sep. okt. nov. des.",
    "Swedish": "jan feb mar apr maj jun jul aug sep okt nov dec",
    "Finnish": "tammi helmi maalis huhti touko kesä heinä elo syys loka marras joulu",
    "Turkish": "Oca Şub Mar Nis May Haz Tem Ağu Eyl Eki Kas Ara",
    "Russian": "янв фев мар апр мая июн июл авг сен окт ноя дек",
    "Ukrainian": "січ лют бер кві тра чер лип сер вер жов лис гру",
    "Greek": "Ιαν Φεβ Μαρ Απρ Μαΐ Ιουν Ιουλ Αυγ Σεπ Οκτ Νοε Δεκ",
    "Hungarian": "jan febr márc ápr máj jún júl aug szept okt nov dec",
    "Lithuanian": "saus. vas. kov. bal. geg. birž. liep. rugp. rugs. spal. lapkr. gruod.",
    "Thai": "ม.ค. ก.พ. มี.ค. เม.ย. พ.ค. มิ.ย. ก.ค. ส.ค. ก.ย. ต.ค. พ.ย. ธ.ค.",
    "Chinese": "1月 2月 3月 4月 5月 6月 7月 8月 9月 10月 11月 12月",
    "Korean": "1월 2월 3월 4월 5월 6월 7월 8월 9월 10월 11월 12월",
}
"""As glibc 2.36 has them (localedata/locales, abmon)."""


@pytest.mark.parametrize("names", YEARS.values(), ids=YEARS)
def test_the_months_of_a_language_are_known(names: str) -> None:
    assert [months_of(name) for name in names.split()] == [{month} for month in range(1, 13)]


@pytest.mark.parametrize(
    ("words", "month"),
    [("Thg 11", 11), ("11-р сар", 11), ("de març", 3), ("d’oct.", 10), ("Ter Set", 9), ("二 3月", 3)],
)
def test_a_month_may_have_several_words(words: str, month: int) -> None:
    assert months_of(words) == {month}


@pytest.mark.parametrize(("word", "month"), [("M\\xe4r", 3), ("pa\\xbc", 10), ("11\\xd4\\xc2", 11)])
def test_a_month_in_another_encoding_is_known_where_one_fits(word: str, month: int) -> None:
    """Latin-1, ISO 8859-2, GBK."""
    assert months_of(word) == {month}


@pytest.mark.parametrize(
    ("words", "months"),
    [
        ("cze lip sie paź lis gru", (6, 7, 8, 10, 11, 12)),
        ("svi lip srp ruj lis stu", (5, 6, 7, 9, 10, 11)),
        ("čec srp zář říj lis pro", (7, 8, 9, 10, 11, 12)),
    ],
    ids=["Polish", "Croatian", "Czech"],
)
def test_a_name_of_two_months_is_the_one_that_follows(words: str, months: tuple[int, ...]) -> None:
    """ "lip" is June in Croatian and July in Polish."""
    lines, _ = read("".join(f"{word} 11 03:11:09 n1 kernel: text\n" for word in words.split()))

    assert [int(text[5:7]) for text in said(lines)] == list(months)


def test_a_month_that_is_not_known_is_placed_by_its_day_and_said() -> None:
    lines, tally = read(
        "Sep 29 03:11:09 n1 kernel: one\nxyz 30 03:11:09 n1 kernel: two\nzyx 01 03:11:09 n1 kernel: three\n"
    )

    assert said(lines) == [
        "2026-09-29T03:11:09 one",
        "2026-09-30T03:11:09 two",
        "2026-10-01T03:11:09 three",
    ]
    assert list(tally.remarks)[1:] == [
        'the month "xyz" could not be read: by its place in the file it is 9',
        'the month "zyx" could not be read: by its place in the file it is 10',
    ]


def test_a_first_month_that_is_not_known_is_the_one_in_which_the_file_was_written() -> None:
    """On 27 November."""
    lines, _ = read("xyz 28 03:11:09 n1 kernel: one\nzyx 26 03:11:09 n1 kernel: two\n")

    assert said(lines) == ["2026-10-28T03:11:09 one", "2026-11-26T03:11:09 two"]
