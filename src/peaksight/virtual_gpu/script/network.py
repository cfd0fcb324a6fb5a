"""Guards of the audit net that keep a simulated run offline: loopback and unix sockets only."""

import errno
import ipaddress
import os
import socket
from typing import Any

from peaksight.virtual_gpu.script.journal import note

OFFLINE = "network-off"


def _guard_connection(connection: Any, address: Any) -> None:
    if isinstance(address, tuple) and not _is_local(address[0]):
        note(OFFLINE, str(address[0]))
        raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))


def _guard_lookup(host: Any, *args: Any) -> None:
    if not _is_local(host) and not _is_address(host):
        note(OFFLINE, _text(host))
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")


NETWORK_GUARDS = {
    "socket.connect": _guard_connection,
    "socket.sendto": _guard_connection,
    "socket.sendmsg": _guard_connection,
    "socket.getaddrinfo": _guard_lookup,
    "socket.gethostbyname": _guard_lookup,
}


def _is_local(host: Any) -> bool:
    name = _text(host)
    if name in ("", "localhost", "0.0.0.0", "::", socket.gethostname()):
        return True
    return _is_address(name) and ipaddress.ip_address(name.partition("%")[0]).is_loopback


def _is_address(host: Any) -> bool:
    try:
        ipaddress.ip_address(_text(host).partition("%")[0])
    except ValueError:
        return False
    return True


def _text(host: Any) -> str:
    return "" if host is None else host.decode() if isinstance(host, bytes) else str(host)
