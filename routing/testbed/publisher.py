"""Sends KV events over ZeroMQ as vLLM 0.32 does: PUB for the stream, ROUTER for replay."""

import asyncio
import time
from collections import deque
from typing import Any, cast

import msgspec
import zmq

BUFFER_STEPS = 10_000
HIGH_WATER_MARK = 100_000
END = b"\xff" * 8
BIND_ATTEMPTS, BIND_PAUSE_SECONDS = 50, 0.01

_encode = msgspec.msgpack.Encoder().encode


class KvPublisher:
    """Batches `[ts, events, rank]`, numbered from 0 in each life of the engine."""

    def __init__(self, host: str, *, port: int, replay_port: int, topic: str) -> None:
        self._host = host
        self.topic = topic
        self._context = zmq.Context()
        self._context.linger = 0
        self._loop = asyncio.get_running_loop()
        self._open(port, replay_port)

    def _open(self, port: int, replay_port: int) -> None:
        self._sequence = 0
        self._buffer: deque[tuple[bytes, bytes]] = deque(maxlen=BUFFER_STEPS)
        self._pub = self._context.socket(zmq.PUB)
        self._pub.set_hwm(HIGH_WATER_MARK)
        self._router = self._context.socket(zmq.ROUTER)
        self.port = self._bind(self._pub, port)
        self.replay_port = self._bind(self._router, replay_port)
        self._loop.add_reader(self._router.FD, self._answer_replays)

    def restart(self) -> None:
        """Begin a life at the same ports: numbers from 0, nothing to replay; the cache stays."""
        self._close()
        self._open(self.port, self.replay_port)

    def publish(self, events: list[dict[str, Any]]) -> None:
        """Send one batch; a slow subscriber loses batches, the engine never waits."""
        number = self._sequence.to_bytes(8, "big")
        self._sequence += 1
        stamp = time.time()  # noqa: TID251 - the wire format carries the sender's clock
        payload = _encode([stamp, events, 0])
        self._buffer.append((number, payload))
        self._pub.send_multipart([self.topic.encode(), number, payload], zmq.NOBLOCK)

    def source(self) -> dict[str, Any]:
        """This publisher's entry in `GET /kv_event_sources`."""
        return {
            "enable_kv_cache_events": True,
            "publisher": "zmq",
            "endpoint": f"tcp://*:{self.port}",
            "replay_endpoint": f"tcp://{self._host}:{self.replay_port}",
            "buffer_steps": BUFFER_STEPS,
            "hwm": HIGH_WATER_MARK,
            "max_queue_size": HIGH_WATER_MARK,
            "topic": self.topic,
        }

    def stop(self) -> None:
        """Close both sockets."""
        self._close()
        self._context.term()

    def _close(self) -> None:
        self._loop.remove_reader(self._router.FD)
        # Ports are free again once both are closed, which happens in another thread.
        self._pub.close()
        self._router.close()

    def _bind(self, socket: "zmq.Socket[bytes]", port: int) -> int:
        _bind_when_free(socket, f"tcp://{self._host}:{port or '*'}")
        address = cast("bytes", socket.LAST_ENDPOINT).decode()
        return int(address.rpartition(":")[2])

    def _answer_replays(self) -> None:
        # The descriptor fires once per change, so everything that waits is read.
        while int(self._router.EVENTS) & zmq.POLLIN:
            frames = self._router.recv_multipart(zmq.NOBLOCK)
            if len(frames) == 3 and len(frames[2]) == 8:
                self._replay(frames[0], int.from_bytes(frames[2], "big"))

    def _replay(self, client: bytes, start: int) -> None:
        topic = self.topic.encode()
        for number, payload in self._buffer:
            if int.from_bytes(number, "big") >= start:
                self._send(client, topic, number, payload)
        self._send(client, b"", END, b"")

    def _send(self, client: bytes, topic: bytes, number: bytes, payload: bytes) -> None:
        try:
            self._router.send_multipart([client, b"", topic, number, payload], zmq.NOBLOCK)
        except zmq.Again:
            # A client that does not read loses the rest; it notices the missing end.
            return


def _bind_when_free(socket: "zmq.Socket[bytes]", address: str) -> None:
    """A port of our own that was just closed is released a moment later."""
    for attempt in range(BIND_ATTEMPTS):
        try:
            socket.bind(address)
        except zmq.ZMQError as error:
            if error.errno != zmq.EADDRINUSE or attempt == BIND_ATTEMPTS - 1:
                raise
            time.sleep(BIND_PAUSE_SECONDS)
        else:
            return
