"""What tools and people put before a line is taken off, in any mixture."""

import pytest

from tests.replay.reading import read, said

LINE = "[   12.345678] text"

PREFIXES = {
    "pdsh": "node-17: ",
    "pdsh of dmesg -x": "node-17: kern  :err   : ",
    "clush of a domain": "node-17.example.com: ",
    "ansible": "node-17 | CHANGED | rc=0 | (stdout) ",
    "docker compose": "reader-1  | ",
    "parallel --tag": "node-17\t",
    "srun --label": "3: ",
    "mpirun --tag-output": "[1,0]<stdout>:",
    "torchrun": "[rank0]:",
    "stern": "reader-abc main ",
    "kubectl --prefix": "[pod/reader-abc/main] ",
    "grep -H": "kern.log.1:",
    "grep -n": "17:",
    "grep -Hn": "/var/log/kern.log:17:",
    "zgrep": "/var/log/messages-20250311.gz:",
    "grep -C": "/var/log/kern.log-17-",
    "grep -h -n -C": "17-",
    "findstr": "C:\\logs\\kern.log:17:",
    "pdsh of grep": "node-17: /var/log/kern.log:",
    "cat -n": "     17\t",
    "a serial console": "node-17 login: ",
    "blanks": "    ",
    "a tab": "\t",
    "blanks of a page": "\u00a0\u00a0",
    "blanks of a Chinese page": "\u3000\u3000",
    "quoted": "> ",
    "quoted twice": ">> > ",
    "quoted in HTML": "&gt; ",
    "a table": "| ",
    "a list": "- ",
    "a list of numbers": "12. ",
    "a list in brackets": "(12) ",
    "a frame": "\u2502 ",
    "a priority in HTML": "&lt;4&gt;",
    "a list of code": "* `",
    "quotation marks": '"',
    "HTML": "<pre>",
    "quoted, in a list, of pdsh": "> - node-17: ",
    "colours": "\x1b[32m",
    "colours of grep": "\x1b[35m\x1b[Kkern.log\x1b[m\x1b[K\x1b[36m\x1b[K:\x1b[m\x1b[K",
    "colours of less": "^[[0;1;39m",
    "colours of rsyslog": "#033[31m",
    "colours of a shell": "\\033[31m",
    "colours of JSON": "\\u001b[31m",
    "what a crash leaves": "\0\0\0\0",
    "a line's end of Windows before it": "\r",
}


@pytest.mark.parametrize("prefix", PREFIXES.values(), ids=PREFIXES)
def test_a_prefix_is_taken_off(prefix: str) -> None:
    lines, tally = read(f"{prefix}{LINE}\n{prefix}{LINE}\n")

    assert said(lines) == ["1970-01-01T00:00:12.345678 text"] * 2
    assert tally.unread == 0


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("kern.log:Mar 11 03:11:09 n1 kernel: text", "2026-03-11T03:11:09 text"),
        ("messages-2025-03-11T03:11:09+00:00|err|kernel[-]|text", "2025-03-11T03:11:09 text"),
        ("messages-20250311:17:2025-03-11T03:11:09+00:00|err|kernel[-]|text", "2025-03-11T03:11:09 text"),
        ("node-17: 10月 14 03:11:09 n1 kernel: text", "2026-10-14T03:11:09 text"),
        ("> 10.1.1.9: kern: warning: [2025-03-11T03:11:09Z]: text", "2025-03-11T03:11:09 text"),
        ("    <3>1 2025-03-11T03:11:09Z n1 kernel - - - text", "2025-03-11T03:11:09 text"),
        ("node-17: [2025-03-11-03:11:09.704360] [ascend] text", "2025-03-11T03:11:09.70436 [ascend] text"),
        (
            "n1: [ERROR] KERNEL(5,sklogd):2025-03-11-03:11:09.646.254 [klogd.c:247][1.2] text",
            "2025-03-11T03:11:09.646254 text",
        ),
    ],
)
def test_any_form_may_stand_behind_a_prefix(line: str, expected: str) -> None:
    assert said(read(f"{line}\n")[0]) == [expected]


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ('"', '",'),
        ("'", "'"),
        ("`", "`"),
        ("<pre>", "</pre>"),
        ("| ", " |"),
        ("\u2502 ", " \u2502"),
        ("* `", "`"),
    ],
)
def test_what_closes_a_line_goes_with_what_opens_it(opening: str, closing: str) -> None:
    assert said(read(f"{opening}{LINE}{closing}\n")[0]) == ["1970-01-01T00:00:12.345678 text"]


def test_colours_may_stand_as_text_behind_the_writer() -> None:
    lines, _ = read("Okt 28 10:29:40 n1 kernel: ^[[0;1;39mtext^[[0m\n")

    assert said(lines) == ["2026-10-28T10:29:40 text"]


def test_what_stands_around_lines_in_json_is_no_line() -> None:
    """As Ansible shows them."""
    lines, tally = read(
        f'ok: [n1] => {{\n    "dmesg.stdout_lines": [\n        "{LINE}",\n        "{LINE}"\n    ]\n}}\n'
    )

    assert [line.message for line in lines] == ["text", "text"]
    assert (tally.others, tally.unread) == (4, 0)


def test_lines_behind_other_prefixes_follow_each_other() -> None:
    lines, tally = read(f"{LINE}\n> {LINE}\nnode-17: {LINE}\n{LINE}\n")

    assert len(said(lines)) == 4
    assert tally.unread == 0


def test_the_rest_of_a_message_is_found_behind_a_prefix() -> None:
    lines, _ = read(f"> {LINE}\n>                rest\n> {LINE}\n")

    assert [line.message for line in lines] == ["text\nrest", "text"]


def test_a_message_without_a_time_loses_what_people_put_before_it() -> None:
    lines, _ = read("> - NVRM: text\n")

    assert [line.message for line in lines] == ["NVRM: text"]


def test_a_prefix_that_hides_a_time_is_none() -> None:
    """It would be a line without a time, and its time lost without a word."""
    lines, _ = read("at 03:11: kernel: text\n")

    assert [line.unread for line in lines] == [1]


def test_a_host_may_stand_above_its_lines() -> None:
    """As dshbak and clush -b write them."""
    rule = "-" * 15
    lines, tally = read(f"{rule}\nn1\n{rule}\n{LINE}\n{rule}\nn[2-9] (8)\n{rule}\n{LINE}\n")

    assert len(said(lines)) == 2
    assert (tally.others, tally.unread) == (6, 0)
    assert list(tally.remarks) == ["lines of 2 hosts are judged as those of one node: n1, n[2-9] (8)"]
