"""The line on which a key stands, also where TOML makes that hard to see."""

import tomllib

import pytest

from nodeagent.toml.lines import KeyPath, TomlLines

TEXT = '''# comment with [a.bracket] and "quote
kind = "chip" # trailing [x]
[codes."XID_*"]
name = """
[codes.FAKE]
level = "not a key" \\"""
"""
level = 'single # [no]'
list = [
  "a]", # ]
  ["b"],
]
after = 1

[codes.A]
level.deep = 1
inline = { x = 1, y = "}" }
[[rule]]
id = "r0"
regex = \'\'\'\\[x\\] = (?P<a>"b")
level = \'\'\'
"quoted = key" = 3
[[rule]]
  id = "r1"
[rule.sub]
key = 4
[codes . 'B C']
x = 1'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("kind",), 2),
        (("codes", "XID_*"), 3),
        (("codes", "XID_*", "name"), 4),
        (("codes", "XID_*", "level"), 8),
        (("codes", "XID_*", "list"), 9),
        (("codes", "XID_*", "after"), 13),
        (("codes", "A"), 15),
        (("codes", "A", "level", "deep"), 16),
        (("codes", "A", "inline", "y"), 17),
        (("rule", 0), 18),
        (("rule", 0, "regex"), 20),
        (("rule", 0, "level"), 18),
        (("rule", 0, "quoted = key"), 22),
        (("rule", 1, "id"), 24),
        (("rule", 1, "sub", "key"), 26),
        (("codes", "B C", "x"), 28),
        (("codes", "A", "missing"), 15),
        (("missing",), None),
    ],
)
def test_a_key_is_found_on_its_line(path: KeyPath, line: int | None) -> None:
    assert TomlLines(TEXT, tomllib.loads(TEXT)).of(path) == line


PLAIN = """kind = "chip"
[[rule]]
id = "r0"
[codes.A] # one
name = "a"
[codes."XID_*"]
levels = { x = "y" }

[[rule]]
id = "r1"
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("rule", 0), 2),
        (("codes", "A"), 4),
        (("codes", "A", "name"), 5),
        (("codes", "XID_*"), 6),
        (("codes", "XID_*", "levels", "x"), 7),
        (("rule", 1), 9),
        (("rule", 1, "id"), 10),
        (("codes",), 4),
    ],
)
def test_headers_and_keys_of_a_plain_text_are_found(path: KeyPath, line: int) -> None:
    assert TomlLines(PLAIN, tomllib.loads(PLAIN)).of(path) == line


@pytest.mark.parametrize(
    "text",
    [
        'x = """\n[codes.A]\n"""\n[codes.A]\n',
        'x = """\n[[rule]]\n"""\n[codes.A]\n',
        "[codes . A]\n",
        "[codes.'A']\n",
        "codes = { A = {} }\n",
        "[codes]\nA.x = 1\n",
    ],
)
def test_what_only_looks_like_a_header_leads_nowhere(text: str) -> None:
    expected = {"[codes . A]\n": 1, "[codes.'A']\n": 1, "codes = { A = {} }\n": 1, "[codes]\nA.x = 1\n": 2}
    assert TomlLines(text, tomllib.loads(text)).of(("codes", "A")) == expected.get(text, 4)
