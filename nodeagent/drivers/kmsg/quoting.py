"""Lines that begin with a name of any length that users choose: no message of a driver, whatever their text.

A program's and an interface's name have at most 15 bytes, which is too short for every pattern of the tables.
The kernel begins some lines with longer ones; they are recognised by the text after the name, and by more of
it than such a short name has: else a program could hide the line of its own fault. It decides about
nothing else, and knows no patterns.
"""

import re
from typing import Final

BEHIND_A_LONG_NAME: Final = re.compile(
    # The file of a program, where kernel.print-fatal-signals is set: kernel/signal.c, print_fatal_signal().
    r": potentially unexpected fatal signal \d+\.$"
    # The prefix of a firewall's rule, for users' own networks where nf_log_all_netns is set:
    # net/netfilter/nf_log_syslog.c, nf_log_dump_packet_common() and dump_mac_header().
    r"|IN=\S{0,15} OUT=\S{0,15} (?:PHYS(?:IN|OUT)=\S{1,15} )*"
    r"(?:MACSRC=\S|ARP HTYPE=\d|(?:MAC=[0-9a-f:]*(?: TUNNEL=\S+)? ?)?(?:SRC=\S+ DST=|(?:TRUNCATED)?$))"
    # The source of a mount: fs/super.c, get_tree_bdev().
    r"|: Can't (?:lookup|open) blockdev$"
    # A control group, where the line that quotes it was interrupted: kernel/cgroup/cpuset.c,
    # cpuset_print_current_mems_allowed(); the rest is of mm/memcontrol.c, mem_cgroup_print_oom_context().
    r"|,mems_allowed=[\d,-]+(?:$|,global_oom|,oom_memcg=)"
)


def begins_with_a_long_name(message: str) -> bool:
    return BEHIND_A_LONG_NAME.search(message) is not None
