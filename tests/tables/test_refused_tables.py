"""Each way in which a table can be wrong, and the words that say so: file, line, key, reason."""

from collections.abc import Callable

import pytest

ROW = """kind = "chip"
[codes.A1]
name = "a fault"
level = "RestartNPU"
"""
"""Four lines; what a story adds begins on line 5."""

HOST = f"""{ROW}[codes.B1]
name = "a fault of the node"
kind = "host"
level = "PreSeparateFault"
"""
"""Eight lines, with a row of the node."""

Story = tuple[str, str, str]

ROWS: list[Story] = [
    (
        "a level that does not exist",
        'kind = "node"\n[codes.A1]\nname = "a"\nlevel = "SeparateFalt"\n',
        (
            't.toml:4: codes.A1.level: "SeparateFalt": must be one of NotHandleFault, SubHealthFault,'
            " RestartRequest, RestartBusiness, FreeRestartNPU, RestartNPU, PreSeparateNPU, SeparateNPU,"
            " ManuallySeparateNPU, RestartRequestFault, ResetFault, PreSeparateFault, SeparateFault;"
            ' the nearest is "SeparateFault"'
        ),
    ),
    (
        "a level of another kind",
        'kind = "node"\n[codes.A1]\nname = "a"\nlevel = "SeparateNPU"\n',
        (
            "t.toml:4: codes.A1.level: SeparateNPU is not a level of kind node;"
            " those are NotHandleFault, PreSeparateFault, SeparateFault"
        ),
    ),
    (
        "manual separation by a row",
        'kind = "chip"\n[codes.A1]\nname = "a"\nlevel = "ManuallySeparateNPU"\n',
        "t.toml:4: codes.A1.level: ManuallySeparateNPU may be given by a frequency rule only",
    ),
    (
        "the same code twice",
        ROW + '[codes.A1]\nname = "again"\n',
        "t.toml:5: codes.A1: appears twice in this file; keep one",
    ),
    (
        "two spellings of one hexadecimal code",
        (
            'kind = "chip"\n[codes.020001002]\nname = "a"\nlevel = "SeparateNPU"\n'
            '[codes.20001002]\nname = "b"\nlevel = "RestartNPU"\n'
        ),
        "t.toml:5: codes.20001002: the same code as 020001002 at t.toml:2; keep one",
    ),
    (
        "an unknown key in a row",
        ROW + 'descripton = "typo"\n',
        't.toml:5: codes.A1.descripton: unknown key; the nearest known is "description"',
    ),
    (
        "an unknown key in a file",
        ROW + "[[frequencies]]\n",
        't.toml:5: frequencies: unknown key; the nearest known is "frequency"',
    ),
    (
        "a missing key",
        'kind = "chip"\n[codes.A1]\nlevel = "RestartNPU"\n',
        "t.toml:2: codes.A1.name: missing; it must be a short text in quotes",
    ),
    (
        "a row without a kind",
        '[codes.A1]\nname = "a"\nlevel = "RestartNPU"\n',
        (
            "t.toml:1: codes.A1.kind: missing here and at the top of the file;"
            " it must be one of chip, unifiedbus, node, public, link, host"
        ),
    ),
    (
        "a value of another type",
        ROW + 'user_induced = "yes"\n',
        't.toml:5: codes.A1.user_induced: "yes": must be true or false',
    ),
    (
        "an unknown kind",
        'kind = "gpu"\n',
        't.toml:1: kind: "gpu": must be one of chip, unifiedbus, node, public, link, host',
    ),
    (
        "a source of a level that is not known",
        ROW + 'level_source = "catalogue"\n',
        (
            't.toml:5: codes.A1.level_source: "catalogue": must be one of xid_catalogue, sxid_table,'
            " memory_guide, dcgm, nvml, open_driver, nvsentinel, device_plugin, gpud, mindcluster, nodeagent;"
            ' the nearest is "xid_catalogue"'
        ),
    ),
    (
        "a source of all levels that is not known",
        'level_source = "me"\n',
        (
            't.toml:1: level_source: "me": must be one of xid_catalogue, sxid_table, memory_guide, dcgm,'
            " nvml, open_driver, nvsentinel, device_plugin, gpud, mindcluster, nodeagent"
        ),
    ),
    (
        "a row that closes on nothing",
        ROW + "clear_on = []\n",
        "t.toml:5: codes.A1.clear_on: empty: nothing could ever close the fault",
    ),
    (
        "a bad word in clear_on",
        ROW + 'clear_on = ["recovr"]\n',
        (
            't.toml:5: codes.A1.clear_on: "recovr": neither a quiet time such as "10m" nor a known cause;'
            ' the nearest known is "recover"'
        ),
    ),
    (
        "two quiet times in clear_on",
        ROW + 'clear_on = ["5m", "10m"]\n',
        't.toml:5: codes.A1.clear_on: "10m": there may be one quiet time, longer than zero',
    ),
    (
        "a row of a kernel pattern that waits for a recovery",
        ROW + 'clear_on = ["recover"]\n[[pattern]]\nid = "P"\ncode = "A1"\nregex = "^x$"\ndevice = "node"\n',
        (
            "t.toml:5: codes.A1.clear_on: nothing could close it: kernel lines (P) never report a recovery;"
            " add reboot, operator or a quiet time"
        ),
    ),
    (
        "a link that waits for a reset",
        'kind = "link"\n[codes.A1]\nname = "a"\nlevel = "ResetFault"\nclear_on = ["reset"]\n',
        (
            "t.toml:5: codes.A1.clear_on: nothing could close it: kind link has no reset and no jobs;"
            " add reboot, operator or a quiet time"
        ),
    ),
    (
        "a code with a blank",
        'kind = "chip"\n[codes."A 1"]\nname = "a"\nlevel = "RestartNPU"\n',
        (
            "t.toml:2: codes.A 1: not a code: 1 to 64 characters without blanks,"
            ' of which only the last may be "*"'
        ),
    ),
    (
        "rows that are no table",
        "codes = 3\n",
        "t.toml:1: codes: 3 is given where tables such as [codes.80E18005] are needed",
    ),
    (
        "rules that are no list",
        ROW + "[frequency]\n",
        "t.toml:5: frequency: { } is given where tables under [[frequency]] are needed",
    ),
    (
        "a row that is no table",
        'kind = "chip"\n[codes]\nA1 = "RestartNPU"\n',
        't.toml:3: codes.A1: "RestartNPU" is given where a table is needed',
    ),
]

FREQUENCY = ROW + '[[frequency]]\nid = "r"\ncodes = ["A1"]\nlevel = "ManuallySeparateNPU"\n'
"""Eight lines; a story adds times and time_window."""

RULES: list[Story] = [
    (
        "a bad duration",
        FREQUENCY + 'times = 3\ntime_window = "1 day"\n',
        (
            't.toml:10: frequency[0].time_window: "1 day": a duration is a whole number and one of'
            ' ms, s, m, h, d, in quotes, such as "20s"'
        ),
    ),
    (
        "a duration without a unit",
        FREQUENCY + "times = 3\ntime_window = 86400\n",
        (
            "t.toml:10: frequency[0].time_window: 86400: a duration is a whole number and one of"
            ' ms, s, m, h, d, in quotes, such as "20s"'
        ),
    ),
    (
        "a window beyond the vendor's range",
        FREQUENCY + 'times = 3\ntime_window = "11d"\n',
        't.toml:10: frequency[0].time_window: "11d": must be a duration from "60s" to "10d"',
    ),
    (
        "a count beyond the vendor's range",
        FREQUENCY + 'times = 0\ntime_window = "1d"\n',
        "t.toml:9: frequency[0].times: 0: must be a whole number from 1 to 100",
    ),
    (
        "a release window shorter than a minute",
        FREQUENCY + 'times = 3\ntime_window = "1d"\nrelease_time_window = "59s"\n',
        't.toml:11: frequency[0].release_time_window: must be "60s" or more, or "0s" for never',
    ),
    (
        "a promotion to a lower level that nothing would release",
        ROW
        + '[[frequency]]\nid = "r"\ncodes = ["A1"]\nlevel = "SeparateNPU"\ntimes = 3\ntime_window = "1d"\n',
        (
            "t.toml:5: frequency[0].release_time_window: missing; if only a person releases,"
            " the level must be ManuallySeparateNPU"
        ),
    ),
    (
        "manual separation of a link",
        (
            'kind = "link"\n[[frequency]]\nid = "r"\ncodes = ["*"]\nlevel = "ManuallySeparateNPU"\n'
            'times = 3\ntime_window = "1d"\n[codes.A1]\nname = "a"\nlevel = "ResetFault"\n'
        ),
        "t.toml:5: frequency[0].level: ManuallySeparateNPU is for chips, not for kind link",
    ),
    (
        "a code that no row has",
        ROW + '[[frequency]]\nid = "r"\ncodes = ["A1", "A2"]\nlevel = "ManuallySeparateNPU"\n'
        'times = 3\ntime_window = "1d"\n',
        't.toml:7: frequency[0].codes: "A2": no row has this code',
    ),
    (
        "a frequency rule on a family",
        ROW + '[[frequency]]\nid = "r"\ncodes = ["A*"]\nlevel = "ManuallySeparateNPU"\n'
        'times = 3\ntime_window = "1d"\n',
        (
            't.toml:7: frequency[0].codes: "A*": codes are counted one by one; name them,'
            ' or write "*" for every one'
        ),
    ),
    (
        "the same id twice",
        ROW + '[[duration]]\nid = "r"\ncodes = ["A1"]\nfault_timeout = "1s"\nrecover_timeout = "1s"\n'
        'level = "SeparateNPU"\n[[duration]]\nid = "r"\ncodes = ["A1"]\nfault_timeout = "1s"\n'
        'recover_timeout = "1s"\nlevel = "SeparateNPU"\n',
        't.toml:12: duration[1].id: "r" is defined already at t.toml:5; each id once',
    ),
    (
        "manual separation by a duration rule",
        ROW + '[[duration]]\nid = "r"\ncodes = ["A1"]\nfault_timeout = "1s"\nrecover_timeout = "1s"\n'
        'level = "ManuallySeparateNPU"\n',
        "t.toml:10: duration[0].level: ManuallySeparateNPU may be given by a frequency rule only",
    ),
    (
        "a time-out beyond the vendor's range",
        ROW + '[[duration]]\nid = "r"\ncodes = ["A1"]\nfault_timeout = "601s"\nrecover_timeout = "1s"\n'
        'level = "SeparateNPU"\n',
        't.toml:8: duration[0].fault_timeout: "601s": must be a duration from "0s" to "10m"',
    ),
    (
        "a rule's level that its code's kind does not have",
        ROW + '[[duration]]\nid = "r"\ncodes = ["A1"]\nfault_timeout = "1s"\nrecover_timeout = "1s"\n'
        'level = "SeparateFault"\n',
        (
            "t.toml:10: duration[0].level: SeparateFault is not a level of kind chip; those are"
            " NotHandleFault, SubHealthFault, RestartRequest, RestartBusiness, FreeRestartNPU, RestartNPU,"
            " PreSeparateNPU, SeparateNPU (A1 is of that kind)"
        ),
    ),
    (
        "a threshold that clears above itself",
        ROW + '[[threshold]]\nid = "hot"\ncode = "A1"\nmetric = "temperature_celsius"\nabove = 90\n'
        'clear_below = 95\nfor = "60s"\n',
        "t.toml:10: threshold[0].clear_below: 95.0: must not exceed above, 90.0",
    ),
    (
        "a metric that is neither a reading nor a family",
        ROW + '[[counter]]\nid = "c"\ncode = "A1"\nmetric = "link*"\nincrease = 3\ntime_window = "1h"\n',
        (
            't.toml:8: counter[0].metric: "link*": must be the name of a reading, such as link_up.3, or of'
            ' a family of them, such as "link_up.*"'
        ),
    ),
    (
        "a common cause of one device",
        HOST + '[[common_cause]]\nid = "c"\ncode = "B1"\ncodes = ["A1"]\ndevices = 1\n',
        "t.toml:13: common_cause[0].devices: 1: must be a whole number from 2 to 1024",
    ),
    (
        "a common cause of itself",
        HOST + '[[common_cause]]\nid = "c"\ncode = "B1"\ncodes = ["A1", "B*"]\ndevices = 2\n',
        't.toml:12: common_cause[0].codes: "B*": names B1 too, which the rule itself raises',
    ),
    (
        "a common cause that is a chip's",
        HOST + '[[common_cause]]\nid = "c"\ncode = "A1"\ncodes = ["B1"]\ndevices = 2\n',
        (
            "t.toml:11: common_cause[0].code: A1 is of kind chip; what several devices share is the node's:"
            " host or node"
        ),
    ),
    (
        "a common cause of a code without a row",
        HOST + '[[common_cause]]\nid = "c"\ncode = "B1"\ncodes = ["A1", "A9"]\ndevices = 2\n',
        't.toml:12: common_cause[0].codes: "A9": no row has this code',
    ),
    (
        "a relation that sets a level without one",
        ROW + '[[relation]]\nid = "rel"\ncode = "A1"\nwith = ["A*"]\nwithin = "3m"\nsame = "device"\n'
        'then = "level"\n',
        't.toml:5: relation[0].level: missing; then = "level" needs one',
    ),
    (
        "a relation that only cancel may have without a window",
        ROW + '[[relation]]\nid = "rel"\ncode = "A1"\nwith = ["A*"]\nwithin = "0s"\nsame = "device"\n'
        'then = "absorb"\n',
        't.toml:9: relation[0].within: "0s": only then = "cancel" may reach back however long',
    ),
    (
        "a regex that does not compile",
        ROW + '[[pattern]]\nid = "P"\ncode = "A1"\nregex = "a("\ndevice = "node"\n',
        ("t.toml:8: pattern[0].regex: not a regular expression of RE2: missing ): a("),
    ),
    (
        "a regex that matches every line",
        ROW + '[[pattern]]\nid = "P"\ncode = "A1"\nregex = "x*"\ndevice = "node"\n',
        "t.toml:8: pattern[0].regex: matches an empty line, and so every line",
    ),
    (
        "a regex that may match in the middle of a line",
        ROW + '[[pattern]]\nid = "P"\ncode = "A1"\nregex = "GPU [0-9] has failed"\ndevice = "node"\n',
        (
            "t.toml:8: pattern[0].regex: may match in the middle of a line, where the kernel quotes names"
            " that any user chooses: it must begin with ^ in every branch, without (?m), followed by the"
            " text with which the message begins"
        ),
    ),
    (
        "a count that may be no number",
        ROW + '[[pattern]]\nid = "P"\ncode = "A1"\nregex = \'^memory: (?P<count>\\w+) errors corrected\'\n'
        'device = "node"\n',
        (
            't.toml:8: pattern[0].regex: its group "count" may take more than a number, and a line counts as'
            r" often as that number; write (?P<count>\d{1,9})"
        ),
    ),
    (
        "a pattern's code that names a missing group",
        ROW + '[[pattern]]\nid = "P"\ncode = "A{nr}"\nregex = "^x(?P<code>1)$"\ndevice = "node"\n',
        't.toml:7: pattern[0].code: names the group "nr"; the groups of its regex are code',
    ),
    (
        "a pattern's device that is made of a missing group",
        ROW + '[[pattern]]\nid = "P"\ncode = "A1"\nregex = "^x(?P<b>1)$"\ndevice = "npu{a}"\n',
        't.toml:9: pattern[0].device: names the group "a"; the groups of its regex are b',
    ),
    (
        "a level of another kind by detail",
        ROW + 'levels = { Fatal = "SeparateFault" }\n',
        (
            "t.toml:5: codes.A1.levels.Fatal: SeparateFault is not a level of kind chip; those are"
            " NotHandleFault, SubHealthFault, RestartRequest, RestartBusiness, FreeRestartNPU, RestartNPU,"
            " PreSeparateNPU, SeparateNPU"
        ),
    ),
    (
        "a detail of more than one part",
        ROW + 'levels = { "a.b" = "SeparateNPU" }\n',
        (
            "t.toml:5: codes.A1.levels.a.b: not a detail: what follows the last point of a code,"
            ' without blanks; or "*" for each'
        ),
    ),
    (
        "a family of details",
        ROW + 'levels = { "a*" = "SeparateNPU" }\n',
        (
            "t.toml:5: codes.A1.levels.a*: not a detail: what follows the last point of a code,"
            ' without blanks; or "*" for each'
        ),
    ),
    (
        "a pattern's device that names a missing group",
        ROW + '[[pattern]]\nid = "P"\ncode = "A1"\nregex = "^x$"\ndevice = "pci"\n',
        't.toml:9: pattern[0].device: "pci" is neither "node" nor a group; its regex names no group',
    ),
    (
        "a code of lines that name no device, of a pattern that looks for none",
        ROW + '[[pattern]]\nid = "P"\ncode = "A1"\nunnamed = "A1"\nregex = "^x$"\ndevice = "node"\n',
        (
            't.toml:8: pattern[0].unnamed: device = "node" names the device of every line, so that none could'
            " have this code; leave it out"
        ),
    ),
    (
        "a code of lines that name no device, which names a missing group",
        ROW + '[[pattern]]\nid = "P"\ncode = "A1"\nunnamed = "A{n}"\nregex = "^x(?P<b>1)?$"\ndevice = "b"\n',
        't.toml:8: pattern[0].unnamed: names the group "n"; the groups of its regex are b',
    ),
    (
        "a code of lines that name no device, which has no row",
        ROW + '[[pattern]]\nid = "P"\ncode = "A1"\nunnamed = "B2"\nregex = "^x(?P<b>1)?$"\ndevice = "b"\n',
        't.toml:8: pattern[0].unnamed: "B2": no row has a code that this could produce',
    ),
    (
        "a pattern whose code has no row",
        ROW + '[[pattern]]\nid = "P"\ncode = "B_{n}"\nregex = "^x(?P<n>1)$"\ndevice = "node"\n',
        't.toml:7: pattern[0].code: "B_{n}": no row has a code that this could produce',
    ),
]


@pytest.mark.parametrize(("text", "said"), [pytest.param(*story[1:], id=story[0]) for story in ROWS + RULES])
def test_it_is_refused_with_file_line_key_and_reason(
    refusals: Callable[[str], list[str]], text: str, said: str
) -> None:
    assert refusals(text) == [said]


def test_a_rule_is_told_of_beside_refused_rows_and_not_for_their_codes(
    refusals: Callable[[str], list[str]],
) -> None:
    text = (
        'kind = "chip"\n[codes.A1]\nname = "a"\nlevel = "Bad"\n'
        '[[frequency]]\nid = "r"\ncodes = ["A1", "A2"]\n'
        'times = 3\ntime_window = "1d"\nlevel = "ManuallySeparateNPU"\n'
    )
    assert [line.split(": ")[1:3] for line in refusals(text)] == [
        ["codes.A1.level", '"Bad"'],
        ["frequency[0].codes", '"A2"'],
    ]


def test_all_problems_are_told_at_once(refusals: Callable[[str], list[str]]) -> None:
    text = 'kind = "chip"\n[codes.A1]\nnme = "a"\nlevel = 3\nclear_on = "recover"\n[[frequency]]\nid = "-"\n'
    assert [line.split(": ")[1] for line in refusals(text)] == [
        "codes.A1.nme",
        "codes.A1.name",
        "codes.A1.level",
        "codes.A1.clear_on",
        "frequency[0].id",
        "frequency[0].codes",
        "frequency[0].times",
        "frequency[0].time_window",
        "frequency[0].level",
    ]
