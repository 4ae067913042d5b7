"""Each form of a kernel log is read with its time, its message, and who wrote it."""

import pytest

from nodeagent.replay.log import UNKNOWN_WRITER
from nodeagent.replay.readers import EXAMPLES
from nodeagent.replay.text_forms import FORMS, kind_of
from tests.replay.reading import read, said

DAY = "2025-03-11T03:11:09"

FORM_OF_A_LINE = {
    # dmesg: https://github.com/util-linux/util-linux sys-utils/dmesg.c
    "dmesg": ("[   12.345678] text", "1970-01-01T00:00:12.345678 text"),
    "dmesg, caller": ("[   12.345678][  T123] text", "1970-01-01T00:00:12.345678 text"),
    "dmesg -d": ("[   12.345678 <    0.000021>] text", "1970-01-01T00:00:12.345678 text"),
    "dmesg -d, German": ("[   12.345678 <    0,000021>] text", "1970-01-01T00:00:12.345678 text"),
    "dmesg -T": ("[Tue Mar 11 03:11:09 2025] text", f"{DAY} text"),
    "dmesg -T -d, German": ("[Di Mär 11 03:11:09 2025 <  355,596733>] text", f"{DAY} text"),
    "dmesg -T, Chinese": ("[二 3月 11 03:11:09 2025] text", f"{DAY} text"),
    "dmesg -T, Vietnamese": ("[T3 Thg 3 11 03:11:09 2025] text", f"{DAY} text"),
    "dmesg -T, Catalan": ("[dt. de març 11 03:11:09 2025] text", f"{DAY} text"),
    "dmesg -T, Portuguese": ("[Ter Mar 11 03:11:09 2025] text", f"{DAY} text"),
    "dmesg -H": ("[Mar11 03:11] text", "2026-03-11T03:11:00 text"),
    "dmesg -H, one digit": ("[Mär 9 03:11] text", "2026-03-09T03:11:00 text"),
    "dmesg -H, Chinese": ("[11月 7 17:26] text", "2026-11-07T17:26:00 text"),
    "dmesg -H, Vietnamese": ("[Thg 1127 17:26] text", "2026-11-27T17:26:00 text"),
    "dmesg delta": ("[  +0.000006] text", "1970-01-01T00:00:00.000006 text"),
    "dmesg delta, German": ("[  +0,000006] text", "1970-01-01T00:00:00.000006 text"),
    "dmesg iso": ("2025-03-11T03:11:09,123456+00:00 text", f"{DAY}.123456 text"),
    "dmesg -x iso": ("kern  :err   : 2025-03-11T05:11:09,123456+02:00 text", f"{DAY}.123456 text"),
    "dmesg -x, a program": ("user  :err   : [   12.345678] text", "1970-01-01T00:00:12.345678 ? text"),
    "dmesg -r": ("<3>[   12.345678] text", "1970-01-01T00:00:12.345678 text"),
    "dmesg -r, a program": ("<11>[   12.345678] text", "1970-01-01T00:00:12.345678 ? text"),
    "dmesg -r without time": ("<3>text", "1970-01-01T00:00:00 text"),
    "/dev/kmsg": ("3,17,12345678,-;text", "1970-01-01T00:00:12.345678 text"),
    "ctime with its writer": ("[Tue Mar 11 03:11:09 2025] n1 kernel: text", f"{DAY} text"),
    # journalctl: https://github.com/systemd/systemd src/shared/logs-show.c
    "short": ("Mar 11 03:11:09 n1 kernel: text", "2026-03-11T03:11:09 text"),
    "short, without host": ("Mar 11 03:11:09 kernel: text", "2026-03-11T03:11:09 text"),
    "short, Japanese": (" 3月 11 03:11:09 n1 kernel: text", "2026-03-11T03:11:09 text"),
    "short, Vietnamese": ("Thg 3 11 03:11:09 n1 kernel: text", "2026-03-11T03:11:09 text"),
    "short, Mongolian": ("3-р сар 11 03:11:09 n1 kernel: text", "2026-03-11T03:11:09 text"),
    "short, Chinese of Singapore": ("十一月 11 03:11:09 n1 kernel: text", "2026-11-11T03:11:09 text"),
    "short-precise": ("Mar 11 03:11:09.123456 n1 kernel: text", "2026-03-11T03:11:09.123456 text"),
    "short-full": ("Tue 2025-03-11 03:11:09 UTC n1 kernel: text", f"{DAY} text"),
    "short-full, German": ("Di 2025-03-11 03:11:09 CET n1 kernel: text", f"{DAY} text"),
    "short-full, zone without name": ("Tue 2025-03-11 11:11:09 +08 n1 kernel: text", f"{DAY} text"),
    "short-iso": ("2025-03-11T11:11:09+0800 n1 kernel: text", f"{DAY} text"),
    "short-iso-precise": ("2025-03-11T11:11:09.123456+08:00 n1 kernel: text", f"{DAY}.123456 text"),
    "short-unix": ("1741662669.123456 n1 kernel: text", f"{DAY}.123456 text"),
    "short-monotonic": ("[   12.345678] n1 kernel: text", "1970-01-01T00:00:12.345678 text"),
    "short-delta": ("[   12.345678 <    1.000000 >] n1 kernel: text", "1970-01-01T00:00:12.345678 text"),
    # syslog
    "rsyslog with its own stamp": ("Mar  1 03:11:09 n1 kernel: [   12.3] text", "2026-03-01T03:11:09 text"),
    "RFC 3164": ("<3>Mar 11 03:11:09 n1 kernel: text", "2026-03-11T03:11:09 text"),
    "RFC 3164, a program": ("<11>Mar 11 03:11:09 n1 kernel: text", "2026-03-11T03:11:09 ? text"),
    "RFC 5424": ("<3>1 2025-03-11T03:11:09.123456Z n1 kernel - - - text", f"{DAY}.123456 text"),
    "RFC 5424, elements": (
        '<3>1 2025-03-11T03:11:09Z n1 kernel - - [a b="x\\]y"][c] \ufefftext',
        f"{DAY} text",
    ),
    "RFC 5424, counted": ("61 <3>1 2025-03-11T03:11:09Z n1 kernel - - - text", f"{DAY} text"),
    "RFC 5424, a program": ("<11>1 2025-03-11T03:11:09Z n1 kernel - - - text", f"{DAY} ? text"),
    "RFC 5424, no priority": ("1 2025-03-11T03:11:09Z n1 kernel - - - text", f"{DAY} text"),
    "busybox": ("Mar 11 03:11:09 n1 kern.err kernel: text", "2026-03-11T03:11:09 text"),
    "logread": ("Tue Mar 11 03:11:09 2025 kern.err kernel: [   12.3] text", f"{DAY} text"),
    "logread, a program": ("Tue Mar 11 03:11:09 2025 user.err kernel: text", f"{DAY} ? text"),
    "year behind the day": ("Mar 11 2025 03:11:09 n1 kernel: text", f"{DAY} text"),
    "year first": ("2025 Mar 11 03:11:09 n1 kernel: text", f"{DAY} text"),
    "slashes": ("2025/03/11 03:11:09 n1 kernel: text", f"{DAY} text"),
    "host and its rack": ("Mar 11 03:11:09 R8 n1 kernel: text", "2026-03-11T03:11:09 text"),
    "host that is not told": ("Mar 11 03:11:09 <redacted> kernel: text", "2026-03-11T03:11:09 text"),
    "host that is blanked": ("2025-03-11T03:11:09Z [HOST NAME] kernel: text", f"{DAY} text"),
    "host of stars": ("Mar 11 03:11:09 **** kernel: [   12.3] text", "2026-03-11T03:11:09 text"),
    "host of version 6": ("Mar 11 03:11:09 fe80::1 kernel: text", "2026-03-11T03:11:09 text"),
    # EulerOS, HCE, openEuler
    "EulerOS": ("2025-03-11T11:11:09.5+08:00|err|kernel[-]|[12727.3] text", f"{DAY}.5 text"),
    "EulerOS, without stamp": ("2025-03-11T11:11:09.5+08:00|err|kernel[-]|text", f"{DAY}.5 text"),
    "EulerOS, colon": ("2025-03-11T11:11:09.5+08:00|err|kernel[-]: text", f"{DAY}.5 text"),
    "EulerOS, with host": ("2025-03-11T11:11:09.5+08:00|n1|err|kernel[-]|text", f"{DAY}.5 text"),
    "EulerOS, cut": ("err|kernel[-]|[   12.345678] text", "1970-01-01T00:00:12.345678 text"),
    # Ascend
    "host_kernel.log": ("[2025-03-11-03:11:09.704360] [ascend] text", f"{DAY}.70436 [ascend] text"),
    "device log": (
        "[ERROR] KERNEL(5044,sklogd):2025-03-11-03:11:09.646.254 [klogd.c:247][257382.2] [ascend] text",
        f"{DAY}.646254 [ascend] text",
    ),
    "device log, blank": (
        "[EVENT] KERNEL(5044,sklogd): 2025-03-11-03:11:09.646.254 [klogd.c:253][257382.2] [ascend] text",
        f"{DAY}.646254 [ascend] text",
    ),
    "device log, thread": (
        "[ERROR] KERNEL(5044,sklogd):2025-03-11-03:11:09.646.254 [klogd.c:247][tid:12] [257382.2] text",
        f"{DAY}.646254 text",
    ),
    "device log, cut": ("[ERROR] KERNEL(5044) [klogd.c:247][   12.3] text", "1970-01-01T00:00:12.3 text"),
    # Talos
    "talosctl": ("10.1.1.9: kern: warning: [2025-03-11T03:11:09.45Z]: text", f"{DAY}.45 text"),
    "talosctl, no node": ("kern:  notice: [2025-03-11T03:11:09.45Z]: text", f"{DAY}.45 text"),
    "talosctl, a program": ("kern-1: user: warning: [2025-03-11T03:11:09.45Z]: text", f"{DAY}.45 ? text"),
    # containers, and tools that add a date
    "CRI": ("2025-03-11T03:11:09.123456789Z stdout F [   12.3] text", f"{DAY}.123456789 text"),
    "CRI, raw": ("2025-03-11T03:11:09.123456789Z stderr F <3>[   12.3] text", f"{DAY}.123456789 text"),
    "CRI, kmsg": ("2025-03-11T03:11:09.123456789Z stdout P 3,17,123,-;text", f"{DAY}.123456789 text"),
    "CRI, a date of its own": (
        "2025-03-12T03:11:09.123456789Z stdout F 2025-03-11T03:11:09Z n1 kernel: text",
        f"{DAY} text",
    ),
    "kubectl --timestamps": ("2025-03-11T03:11:09.123456789Z [   12.3] text", f"{DAY}.123456789 text"),
    "kubectl --prefix": (
        "[pod/a/b] 2025-03-11T03:11:09.123456789Z kernel: text",
        f"{DAY}.123456789 text",
    ),
    "a pipeline": ("2025-03-11T03:11:09.1234567Z [   12.3] text", f"{DAY}.1234567 text"),
    "Jenkins": ("[2025-03-11T03:11:09.123Z] [   12.3] text", f"{DAY}.123 text"),
    "Jenkins, syslog": ("[2025-03-12T03:11:09.123Z] Tue Mar 11 03:11:09 2025 n1 kernel: text", f"{DAY} text"),
    "ts": ("Mar 11 03:11:09 [   12.345678] text", "2026-03-11T03:11:09 text"),
    "rsyslog without a bracket": (
        "2025-03-11T03:11:09.5+00:00 n1 kernel:     8.490167] text",
        f"{DAY}.5 text",
    ),
    "rsyslog without a blank": ("Mar 11 03:11:09 n1 kernel:[   12.3] text", "2026-03-11T03:11:09 text"),
    "day first": ("11 Mar, 03:11:09 n1 kernel: text", "2026-03-11T03:11:09 text"),
    "day first, year": ("11 Mar 2025 03:11:09.5 n1 kernel: text", f"{DAY}.5 text"),
    "to each terminal": (" kernel:[   12.345678] text", "1970-01-01T00:00:12.345678 text"),
    "to each terminal, no stamp": (" kernel:NMI watchdog: text", "1970-01-01T00:00:00 NMI watchdog: text"),
    # tables
    "table": ("| 2025-03-11T03:11:09Z | n1 | text |", f"{DAY} text"),
    "table, level": ("2025-03-11 03:11:09 | n1 | err | kernel | text", f"{DAY} text"),
    "table, no host": ("2025-03-11 03:11:09.5 | [   12.3] text", f"{DAY}.5 text"),
    "table, month": ("| Mar 11 03:11:09 | n1 | kernel: text |", "2026-03-11T03:11:09 text"),
    "no time": ("kernel: text", "1970-01-01T00:00:00 text"),
    "no time, a host": ("n1 kernel: [   12.345678] text", "1970-01-01T00:00:12.345678 text"),
}


@pytest.mark.parametrize(("line", "expected"), FORM_OF_A_LINE.values(), ids=FORM_OF_A_LINE)
def test_a_line_is_read_in_its_form(line: str, expected: str) -> None:
    lines, tally = read(f"{line}\n")

    assert said(lines) == [expected]
    assert (tally.others, tally.unread) == (0, 0)


OF_OTHERS = {
    "syslog": "Mar 11 03:11:09 n1 sshd[12]: kernel: text",
    "a program that is called so": "Mar 11 03:11:09 n1 kernel[12]: text",
    "ISO": "2025-03-11T03:11:09+00:00 n1 sshd[12]: [   12.3] text",
    "short-unix": "1741662669.123456 n1 app: kernel: text",
    "RFC 5424": "<3>1 2025-03-11T03:11:09Z n1 app 12 - - kernel - - - text",
    "EulerOS": "2025-03-11T03:11:09.5+08:00|err|app[12]|kernel[-]|text",
    "EulerOS, a program called as a level": "2025-03-11T03:11:09.5+08:00|err|warning[-]|kernel[-]|text",
    "EulerOS, a shell": "2025-03-11T03:11:09.5+08:00|notice|[/bin/bash]|[2025-03-11 03:11:09 root x] text",
    "EulerOS, its monitor": "2025-03-11T03:11:09.5+00:00|info|sysmonitor[12706]: kernel[-]|text",
    "Ascend, another module": "[ERROR] DRV(8579,None):2025-03-11-03:11:09.812.725 [dev_mon_api.c:2976] text",
    "Ascend, a process": (
        "[ERROR] APP(1,x):2025-03-11-03:11:09.000.000 [a.c:1] KERNEL(1,x): [klogd.c:247][   12.3] text"
    ),
    "Ascend, the logger itself": "[ERROR] KERNEL(1,sklogd):2025-03-11-03:11:09.000.000 [main.c:1] text",
    "console": "[  OK  ] Started text",
    "a boot in a journal": "-- Boot 0a1b2c3d4e5f --",
    "a file among others": "==> /var/log/messages <==",
    "a command": "[root@n1 ~]# dmesg -T | grep -i xid",
    "a fence": "```text",
    "a fence in a list": "   ```text",
    "a fence that is quoted": "> ```",
    "a property of talosctl": " SUBSYSTEM=pci",
    "a message to each terminal": "Message from syslogd@n1 at Mar 11 03:11:09 ...",
    "a title": "--- dmesg ---",
    "a rule of a table": "|------|:----:|",
}


@pytest.mark.parametrize("line", OF_OTHERS.values(), ids=OF_OTHERS)
def test_what_is_no_line_of_the_kernel_is_understood_and_left_out(line: str) -> None:
    lines, tally = read(f"{line}\n")

    assert lines == []
    assert (tally.others, tally.unread) == (1, 0)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_no_two_forms_take_one_line(form: object) -> None:
    """So their order is of no matter."""
    example = EXAMPLES[getattr(form, "name")]  # noqa: B009  # of an object of pytest
    taking = [
        other.name
        for other in FORMS
        if kind_of(example[0]) in other.begins and other.regex.match(example) is not None
    ]
    assert taking == [getattr(form, "name")]  # noqa: B009


def test_a_day_that_never_was_is_no_time() -> None:
    lines, _ = read("[Tue Feb 30 03:11:09 2025] text\n")

    assert [(line.message, line.unread) for line in lines] == [("[Tue Feb 30 03:11:09 2025] text", 1)]


def test_a_leap_day_without_a_year_is_of_the_last_leap_year() -> None:
    assert said(read("Feb 29 03:11:09 n1 kernel: text\n")[0]) == ["2024-02-29T03:11:09 text"]


def test_lines_of_other_forms_follow_each_other() -> None:
    lines, tally = read(
        "Mar 11 03:00:00 n1 kernel: one\n"
        "2025-03-11T03:11:09.565426+08:00|warning|kernel[-]|[12727.392078] two\n"
        "Okt 14 03:11:09 n1 kernel: three\n"
    )

    assert [line.message for line in lines] == ["one", "two", "three"]
    assert tally.unread == 0


def test_a_form_that_is_named_is_the_only_one() -> None:
    lines, _ = read("[   12.3] one\nMar 11 03:11:09 n1 kernel: two\n", only="syslog")

    assert [(line.message, line.unread) for line in lines] == [("[   12.3] one", 1), ("two", 0)]


def test_plain_lines_are_messages_one_a_second() -> None:
    assert said(read("one\n[   12.3] two\n", only="plain")[0]) == [
        "1970-01-01T00:00:00 one",
        "1970-01-01T00:00:01 [   12.3] two",
    ]


@pytest.mark.parametrize(
    "message",
    [
        "NVRM: text",
        "[ascend] [drv_pcie] text",
        "mlx5_core 0000:17:00.0: text",
        "nvme nvme0: text",
        "EDAC MC0: text",
    ],
)
def test_in_a_log_without_writers_a_message_is_read_behind_its_date(message: str) -> None:
    """Whether it is the kernel's the patterns say."""
    lines, _ = read(f"Mar 11 03:11:09 {message}\n2025-03-11T03:11:09Z n1 kernel {message}\n")

    assert [(line.message, line.trusted, line.unread) for line in lines] == [
        (message, True, UNKNOWN_WRITER)
    ] * 2


@pytest.mark.parametrize("before", ["n1 kernel: one", "n1 sshd[12]: one", "sshd[12]: one"])
def test_in_a_log_with_writers_a_line_without_one_is_not_the_kernels(before: str) -> None:
    lines, tally = read(f"Mar 11 03:11:09 {before}\nMar 11 03:11:09 NVRM: text\n")

    assert [line.message for line in lines if line.message != "one"] == []
    assert tally.others >= 1
