"""The line on which a key stands, also where TOML makes that hard to see."""

import tomllib

import pytest

from nodeagent.toml.lines import KeyLines, KeyPath

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
    tomllib.loads(TEXT)
    assert KeyLines(TEXT).of(path) == line
