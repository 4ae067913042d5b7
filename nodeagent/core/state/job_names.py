"""What the name of a supervised job says: whether a cgroup proves it, and who answers for it.

``slurm:7.0``, ``pod:UID`` and ``container:ID`` are proven by a cgroup; ``NAME/PID`` is a further supervisor
of that job, and ``pid:PID`` one whose cgroup proves nothing.
"""

from typing import Final

NO_CGROUP: Final = "pid:"
"""Begins the name of a job whose processes no cgroup tells from others."""

_OF_CONTAINERS: Final = ("pod:", "container:")


def cgroup_of(name: str) -> str:
    """The job's name without the pid of a second supervisor."""
    return name.partition("/")[0]


def is_first_of_cgroup(name: str) -> bool:
    """Whether it is that of the first supervisor of a job which a cgroup proves: there is one of each."""
    return bool(name) and not name.startswith(NO_CGROUP) and "/" not in name


def answers_for(name: str, uid: int) -> str:
    """Whom limits count the job of: its user; of a pod or a container that itself, for the users in it are
    not those of the node, and root of all is one.
    """
    return cgroup_of(name) if name.startswith(_OF_CONTAINERS) else f"uid:{uid}"
