"""Which ranks have ended: every rank keeps a connection to rank 0, and the system closes that of a process that
ends, however it ends. Where no connection can be made, the time limits are what is left."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

_CONNECT = 10.0
"""Seconds in which a rank reaches rank 0, and says who it is."""
_LINE = 256


class Presence:
    """``gone``: the ranks that are known to have ended. Threads fill it."""

    def __init__(self) -> None:
        self.gone: set[int] = set()
        self._connections: dict[int, socket.socket] = {}
        self._lock = threading.Lock()

    def listen(self, token: str) -> int:
        """Rank 0: accept the connections of ranks that know ``token``. Returns the port; 0 where that is refused."""
        try:
            dual = socket.has_dualstack_ipv6()
            family = socket.AF_INET6 if dual else socket.AF_INET
            listener = socket.create_server(("", 0), family=family, dualstack_ipv6=dual, backlog=1024)
        except OSError:
            return 0
        _start(self._accept, listener, token)
        return int(listener.getsockname()[1])

    def join(self, host: str, port: int, token: str, rank: int) -> None:
        """Another rank: connect to rank 0."""
        try:
            connection = socket.create_connection((host, port), timeout=_CONNECT)
            connection.settimeout(None)
            connection.sendall(f"{token} {rank}\n".encode())
        except OSError:
            return
        _start(self._follow, connection)

    def _follow(self, connection: socket.socket) -> None:
        """Hear from rank 0 which ranks have ended; it has ended itself where the connection is closed."""
        with suppress(OSError), connection.makefile("rb") as lines:
            for line in lines:
                self.gone.add(int(line))
        self.gone.add(0)

    def _accept(self, listener: socket.socket, token: str) -> None:
        while True:
            _start(self._attend, listener.accept()[0], token)

    def _attend(self, connection: socket.socket, token: str) -> None:
        """Wait until the rank at the other end has ended, and tell the others."""
        rank = None
        with suppress(OSError), connection, connection.makefile("rb") as lines:
            connection.settimeout(_CONNECT)
            word, _, name = lines.readline(_LINE).decode(errors="replace").strip().partition(" ")
            if word != token:
                return
            rank = int(name)
            connection.settimeout(None)
            with self._lock:
                self._connections[rank] = connection
                _tell(connection, self.gone)
            while lines.read(_LINE):
                pass
        if rank is None:
            return
        with self._lock:
            self.gone.add(rank)
            del self._connections[rank]
            for other in self._connections.values():
                _tell(other, {rank})


def _start(work: Callable[..., None], *arguments: object) -> None:
    threading.Thread(target=work, args=arguments, daemon=True).start()


def _tell(connection: socket.socket, gone: set[int]) -> None:
    """Name ranks that have ended. Where the receiver has ended too, its own thread notices."""
    with suppress(OSError):
        connection.sendall("".join(f"{rank}\n" for rank in sorted(gone)).encode())
