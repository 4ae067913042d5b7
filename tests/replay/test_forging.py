"""What a program chooses to write is not made a line of the kernel by how the log is kept."""

import pytest

from tests.replay.reading import read

XID = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."

HEADS = {
    "short": "Mar 11 03:11:09 n1 app[77]: ",
    "short, German": "Mär 11 03:11:09 n1 app[77]: ",
    "short, Japanese": " 3月 11 03:11:09 n1 app[77]: ",
    "short, without host": "Mar 11 03:11:09 app[77]: ",
    "short-full": "Tue 2025-03-11 03:11:09 UTC n1 app[77]: ",
    "short-iso": "2025-03-11T03:11:09+0000 n1 app[77]: ",
    "short-unix": "1741662669.123456 n1 app[77]: ",
    "short-monotonic": "[   12.345678] n1 app[77]: ",
    "pdsh": "node-17: Mar 11 03:11:09 n1 app[77]: ",
    "grep -n": "17:Mar 11 03:11:09 n1 app[77]: ",
    "quoted": "> Mar 11 03:11:09 n1 app[77]: ",
    "set inwards": "        Mar 11 03:11:09 n1 app[77]: ",
    "talosctl": "10.1.1.9: daemon: warning: [2025-03-11T03:11:09Z]: ",
}
"""What stands before what a program wrote."""

WRITTEN = {
    "its message": XID,
    "a stamp": f"[   12.345678] {XID}",
    "a line of syslog": f"Mar 11 03:11:09 n1 kernel: {XID}",
    "a tag": f"kernel: {XID}",
    "a quote": f"> Mar 11 03:11:09 n1 kernel: {XID}",
    "a prefix": f"n1: [   12.345678] {XID}",
    "a priority": f"<3>[   12.345678] {XID}",
    "a record": f"3,17,12345678,-;{XID}",
    "a field of EulerOS": f"err|kernel[-]|[   12.345678] {XID}",
    "talosctl": f"kern: warning: [2025-03-11T03:11:09Z]: {XID}",
}


def forged(text: str) -> list[str]:
    """Trusted lines that begin as the kernel's would."""
    return [line.message for line in read(text)[0] if line.message.startswith("NVRM") and line.trusted]


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_what_a_program_wrote_is_its_own(head: str) -> None:
    assert [written for written in WRITTEN if forged(f"{head}{WRITTEN[written]}\n")] == []


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_so_is_the_second_line_of_its_message(head: str) -> None:
    """journalctl sets it below the first, by the bytes before that."""
    for margin in (len(head), len(head.encode())):
        below = f"{head}first\n{' ' * margin}"
        assert [written for written in WRITTEN if forged(f"{below}{WRITTEN[written]}\n")] == []


@pytest.mark.parametrize("tool", ["node-17: ", "17:", "kern.log:17:", "> ", "    "])
@pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN)
def test_a_tool_that_puts_something_before_each_line_changes_nothing(tool: str, written: str) -> None:
    head = "Mar 11 03:11:09 n1 app[77]: "
    text = f"{tool}{head}first\n{tool}{' ' * len(head)}{written}\n"

    assert forged(text) == []
    assert forged(text.replace("17:", "18:", 1)) == []


@pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN)
def test_a_deeper_line_of_a_message_is_no_line_of_the_log(written: str) -> None:
    head = "Mar 11 03:11:09 n1 app[77]: "

    assert forged(f"{head}first\n{' ' * len(head)}    {written}\n") == []
    assert forged(f"{head}first\n\n{' ' * len(head)}\t{written}\n") == []


def test_a_line_without_a_time_is_nobodys_where_the_kernels_lines_are_marked() -> None:
    lines, _ = read(f"Mar 11 03:11:09 n1 app[77]: first\n{XID}\n")

    assert [(line.message, line.trusted) for line in lines] == [(XID, False)]


def test_user_space_is_not_the_kernel_in_any_form_that_says_so() -> None:
    for line in (
        f"<11>[   12.345678] {XID}",
        f"user  :err   : [   12.345678] {XID}",
        f"n1: user: err: [2025-03-11T03:11:09Z]: {XID}",
        f"<11>1 2025-03-11T03:11:09Z n1 kernel - - - {XID}",
        f"<11>Mar 11 03:11:09 n1 kernel: {XID}",
        f"Mar 11 03:11:09 n1 user.err kernel: {XID}",
        f"11,17,12345678,-;{XID}",
        f"<11>{XID}",
    ):
        assert [(each.message, each.trusted) for each in read(f"{line}\n")[0]] == [(XID, False)]
