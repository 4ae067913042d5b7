"""The identity of a caller, and its role. Both come only from the kernel and from TLS.

Each connection comes through a relay (``relay.py``), which knows its peer:
- on a local socket the kernel says which user it is. On the public socket everybody is a reader and nothing
  else, root too: it may have been given to containers, whose root is the kernel's. On the control socket root
  and the operators' group may also control;
- over TCP the peer is an address until its first call shows the names in its verified certificate.
"""

import errno
import grp
import os
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import grpc

from nodeagent.api.refusal import Refusal, Status

OPERATOR_GROUP = "nodeagent-admin"
READER_GROUP = "nodeagent"
CERTIFICATE: Final = "certificate:"
"""Begins the identity of a caller with a certificate."""

ANY_NAME = "*"
"""Stands in ``grpc.roles`` for every certificate name that has no role of its own."""

UCRED: Final = struct.Struct("iII")
"""What the kernel says of a peer: its pid, uid and gid (``struct ucred``, unix(7)). Users and groups have 32
bits without a sign.
"""

_SO_PEERGROUPS: Final = 59
_MAX_OPTION_BYTES: Final = 1024


class Role(StrEnum):
    """What a caller may do: nothing; read; also report what other systems found; or also control."""

    NONE = "none"
    READER = "reader"
    REPORTER = "reporter"
    OPERATOR = "operator"


_GREATEST_FIRST: Final = (Role.NONE, Role.OPERATOR, Role.REPORTER, Role.READER)
"""But for the one that refuses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """``identity`` is what consumers belong to; ``who`` is what the audit log says.

    ``is_operator``: may take the places kept for operators. ``socket``: where limits count this identity
    apart from the same one on other sockets.
    """

    identity: str
    role: Role
    who: str
    advice: str = ""
    is_operator: bool = False
    socket: str = ""

    @property
    def name(self) -> str:
        """The name in the certificate, "" without one."""
        return self.identity.removeprefix(CERTIFICATE) if self.identity.startswith(CERTIFICATE) else ""

    @property
    def counted_as(self) -> str:
        """What limits count."""
        return f"{self.identity} on {self.socket}" if self.socket else self.identity


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerCredentials:
    """The process at the other end of a unix socket, as the kernel saw it when it connected."""

    pid: int
    uid: int
    gid: int
    groups: tuple[int, ...]


@dataclass(slots=True, kw_only=True)
class ConnectionPeer:
    """At the other end of a connection. Connections are counted by ``identity``, on each socket apart.

    ``caller`` is None until its first call; over TCP its identity is not known before.
    """

    identity: str
    is_operator: bool
    credentials: PeerCredentials | None
    caller: Caller | None = None

    @property
    def counted_as(self) -> str:
        return self.identity


Identify = Callable[[grpc.aio.ServicerContext], Caller]
Recognise = Callable[[socket.socket], ConnectionPeer]
"""Raises ``OSError`` where the system does not give it."""

FindCaller = Callable[[ConnectionPeer, grpc.aio.ServicerContext], Caller]

STRANGER: Final = Caller(
    identity="", role=Role.NONE, who="unknown", advice="connect to the control socket itself"
)
"""A caller that did not come through a relay."""


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


def reader(identify: Identify, context: grpc.aio.ServicerContext) -> Caller:
    """The caller of a method that reads. Refuses a caller without the role."""
    caller = identify(context)
    if caller.role is Role.NONE:
        raise Refusal(Status.PERMISSION_DENIED, f"{caller.who} may not read: {caller.advice}")
    return caller


def public_peer(connection: socket.socket) -> ConnectionPeer:
    """A user of this machine or of a container, never an operator."""
    credentials = _peer_credentials(connection)
    return ConnectionPeer(identity=f"uid:{credentials.uid}", is_operator=False, credentials=credentials)


def control_peer(connection: socket.socket) -> ConnectionPeer:
    """A user of this machine."""
    credentials = _peer_credentials(connection)
    return ConnectionPeer(
        identity=f"uid:{credentials.uid}", is_operator=is_operator(credentials), credentials=credentials
    )


def tcp_peer(connection: socket.socket) -> ConnectionPeer:
    """An address; a mapped IPv4 address counts as what it is."""
    host = str(connection.getpeername()[0])
    return ConnectionPeer(
        identity=f"address:{host.removeprefix('::ffff:')}", is_operator=False, credentials=None
    )


def public_caller(peer: ConnectionPeer, _context: grpc.aio.ServicerContext) -> Caller:
    """Anybody on the public socket reads, and takes the part of a reader."""
    return Caller(
        identity=peer.identity,
        role=Role.READER,
        who=_who(peer),
        advice="control calls are taken on the control socket",
    )


def control_caller(peer: ConnectionPeer, _context: grpc.aio.ServicerContext) -> Caller:
    """A peer on the control socket may read, and control if it is an operator."""
    name = peer.identity.replace(":", " ")
    return Caller(
        identity=peer.identity,
        role=Role.OPERATOR if peer.is_operator else Role.READER,
        who=_who(peer),
        advice=f"{name} is neither root nor a member of the group {OPERATOR_GROUP}",
        is_operator=peer.is_operator,
        socket="the control socket",
    )


def _who(peer: ConnectionPeer) -> str:
    return "unknown" if peer.credentials is None else f"uid {peer.credentials.uid} pid {peer.credentials.pid}"


def certificate_caller(roles: Mapping[str, str]) -> FindCaller:
    """Callers with a certificate: the greatest role that one of its names (common name, SAN) has."""

    def find(_peer: ConnectionPeer, context: grpc.aio.ServicerContext) -> Caller:
        found = context.auth_context()
        names = [
            name.decode("utf-8", "replace")
            for key in ("x509_common_name", "x509_subject_alternative_name")
            for name in found.get(key, ())
        ]
        return _caller_by_name(names, roles)

    return find


def _caller_by_name(names: list[str], roles: Mapping[str, str]) -> Caller:
    """A name of its own role goes before "*"; one that is refused refuses the certificate."""
    named = [(name, Role(roles[name])) for name in names if name in roles]
    if not named and names and ANY_NAME in roles:
        named = [(names[0], Role(roles[ANY_NAME]))]
    found = {role: name for name, role in reversed(named)}
    role = next((each for each in _GREATEST_FIRST if each in found), Role.NONE)
    name = found.get(role, names[0] if names else "")
    shown = ", ".join(names) or "a certificate without a name"
    return Caller(
        identity=f"{CERTIFICATE}{name}",
        role=role,
        who=f"certificate {name}",
        advice=f"grpc.roles gives {shown} " + (f'the role "{role}"' if named else "no role"),
        is_operator=role is Role.OPERATOR,
    )


def _peer_credentials(connection: socket.socket) -> PeerCredentials:
    """Asks the kernel who connected. Raises ``OSError`` if it does not say."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, UCRED.size)
    pid, uid, gid = UCRED.unpack(raw)
    return PeerCredentials(pid=pid, uid=uid, gid=gid, groups=_peer_groups(connection))


def _peer_groups(connection: socket.socket) -> tuple[int, ...]:
    """None of them where there are more than Python's ``getsockopt`` has room for: 256."""
    try:
        raw = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _MAX_OPTION_BYTES)
    except OSError as error:
        if error.errno != errno.ERANGE:
            raise
        return ()
    return struct.unpack(f"{len(raw) // struct.calcsize('I')}I", raw)
