"""What people read is spelt as in hunspell's British dictionary; words.txt has the words of the field."""

import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Final

from tests.spelling.prose import prose_of, texts, words_of

WORDS: Final = Path(__file__).with_name("words.txt")


def unknown(words: set[str], *, listed: bool = True) -> set[str]:
    """Those that neither the dictionary nor the list has."""
    given = "".join(f"{word}\n" for word in sorted(words))
    command = ["hunspell", "-d", "en_GB", "-p", WORDS if listed else "/dev/null", "-l", "-i", "utf-8"]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.split())


def test_every_word_is_in_a_dictionary_or_a_word_of_the_field() -> None:
    places = defaultdict[str, set[str]](set)
    for place, text in texts():
        for word in words_of(text):
            places[word].add(place)

    wrong = [f"{word} in {', '.join(sorted(places[word]))}" for word in sorted(unknown(set(places)))]
    todo = f"mend these, or add those of the field to {WORDS.name}, in its order:"
    assert not wrong, "\n".join((todo, *wrong))


def test_the_list_is_sorted_and_has_no_word_of_the_dictionary() -> None:
    listed = WORDS.read_text(encoding="utf-8").split()

    assert listed == sorted({word.lower() for word in listed})
    assert unknown(set(listed), listed=False) == set(listed)


def test_a_misspelt_word_is_found_and_code_is_not_read() -> None:
    text = prose_of("The chip is isolatd: `nodeagnt why`.\n\n```sh\nnodeagnt why\n```\n")

    assert unknown(set(words_of(text))) == {"isolatd"}
