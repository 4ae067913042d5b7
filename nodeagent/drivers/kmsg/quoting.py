"""Lines that begin with a name of any length that users choose: no message of a driver, whatever they say.

A program's and an interface's name have at most 15 bytes, which no pattern of the tables is content with.
The kernel begins some lines with longer ones; by how it goes on behind the name they are known. It decides
about nothing else, and knows no patterns.
"""

import re
from typing import Final

_BEHIND_A_LONG_NAME: Final = re.compile(
    # The file of a program, where kernel.print-fatal-signals is set: kernel/signal.c, print_fatal_signal().
    r": potentially unexpected fatal signal \d+\.$"
    # The prefix of a firewall's rule, for users' own networks where nf_log_all_netns is set:
    # net/netfilter/nf_log_syslog.c, nf_log_dump_packet_common().
    r"|IN=\S* OUT=\S* "
    # The source of a mount: fs/super.c, get_tree_bdev().
    r"|: Can't (?:lookup|open) blockdev$"
    # A control group, where the line that quotes it was interrupted: kernel/cgroup/cpuset.c,
    # cpuset_print_current_mems_allowed().
    r"|,mems_allowed=[\d,-]"
)


def begins_with_a_long_name(message: str) -> bool:
    return _BEHIND_A_LONG_NAME.search(message) is not None
