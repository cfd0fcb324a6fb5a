"""Guards of the audit net that keep a simulated run offline: loopback and unix sockets only."""

import errno
import ipaddress
import os
import socket
from typing import Any

from peaksight.virtual_gpu.script.audit import Guard
from peaksight.virtual_gpu.script.journal import note
from peaksight.virtual_gpu.script.overlay import Overlay


def _guard_connection(overlay: Overlay, connection: Any, address: Any) -> None:
    if isinstance(address, tuple) and not _is_local(address[0]):
        note(overlay.root, str(address[0]), slug="network-off")
        raise _refusal(ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED)), str(address[0]))


def _guard_lookup(overlay: Overlay, host: Any, *args: Any) -> None:
    if not _is_local(host) and not _is_address(host):
        note(overlay.root, _text(host), slug="network-off")
        raise _refusal(socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"), _text(host))


def _refusal(error: OSError, host: str) -> OSError:
    """An error as the script would see it offline, which `refused_host` knows again."""
    vars(error)["peaksight_host"] = host
    return error


def refused_host(error: BaseException) -> str | None:
    """The host that `error` refused, None if it is no refusal of the guards'."""
    return vars(error).get("peaksight_host")


NETWORK_GUARDS: dict[str, Guard] = {
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
