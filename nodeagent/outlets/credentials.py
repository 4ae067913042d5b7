"""Who calls, and what the caller may do. It decides from the kernel's and TLS's word only.

Three doors, each with its own way to tell:
- the public socket: whoever its permissions admit is a reader, all under one identity;
- the control socket: the relay tells the peer's uid and groups (``relay.py``);
- TCP: the names in the verified client certificate.
"""

import grp
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import grpc

OPERATOR_GROUP = "nodeagent-admin"
READER_GROUP = "nodeagent"
ANY_NAME = "*"
"""In ``grpc.roles``: stands for every certificate name that has no role of its own."""


class Role(StrEnum):
    """What a caller may do: nothing, read, or also control."""

    NONE = "none"
    READER = "reader"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """``identity`` is what consumers belong to; ``who`` is what the audit log says."""

    identity: str
    role: Role
    who: str
    advice: str = ""


Identify = Callable[[grpc.aio.ServicerContext], Caller]


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerCredentials:
    """Of a process at the other end of a unix socket, as of its connect: the kernel's word."""

    pid: int
    uid: int
    gid: int
    groups: tuple[int, ...]


def group_id(name: str) -> int | None:
    """The number of a group, None where there is no such group."""
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        return None


def is_operator(peer: PeerCredentials) -> bool:
    """Root, the operators' group, and the user the daemon runs as, who could do anything to it anyway."""
    if peer.uid in (0, os.geteuid()):
        return True
    operators = group_id(OPERATOR_GROUP)
    return operators is not None and operators in (peer.gid, *peer.groups)


def public_caller(_context: grpc.aio.ServicerContext) -> Caller:
    """Anybody on the public socket."""
    return Caller(
        identity="unix",
        role=Role.READER,
        who="public socket",
        advice="control calls are taken on the control socket",
    )


def local_caller(peer: PeerCredentials | None) -> Caller:
    """Of a peer that came through the relay; None did not, and may do nothing."""
    if peer is None:
        return Caller(
            identity="", role=Role.NONE, who="unknown", advice="connect to the control socket itself"
        )
    return Caller(
        identity=f"uid:{peer.uid}",
        role=Role.OPERATOR if is_operator(peer) else Role.READER,
        who=f"uid {peer.uid} pid {peer.pid}",
        advice=f"uid {peer.uid} is neither root nor a member of the group {OPERATOR_GROUP}",
    )


def certificate_caller(roles: Mapping[str, str]) -> Identify:
    """Callers with a certificate: the greatest role that one of its names (common name, SAN) has."""

    def identify(context: grpc.aio.ServicerContext) -> Caller:
        found = context.auth_context()
        names = [
            name.decode("utf-8", "replace")
            for key in ("x509_common_name", "x509_subject_alternative_name")
            for name in found.get(key, ())
        ]
        return _caller_by_name(names, roles)

    return identify


def _caller_by_name(names: list[str], roles: Mapping[str, str]) -> Caller:
    """A name of its own role goes before "*"; one that is refused refuses the certificate."""
    named = [(name, Role(roles[name])) for name in names if name in roles]
    if not named and names and ANY_NAME in roles:
        named = [(names[0], Role(roles[ANY_NAME]))]
    found = {role: name for name, role in reversed(named)}
    role = next((each for each in (Role.NONE, Role.OPERATOR, Role.READER) if each in found), Role.NONE)
    name = found.get(role, names[0] if names else "")
    told = ", ".join(names) or "a certificate without a name"
    return Caller(
        identity=f"certificate:{name}",
        role=role,
        who=f"certificate {name}",
        advice=f"grpc.roles gives {told} " + (f'the role "{role}"' if named else "no role"),
    )
