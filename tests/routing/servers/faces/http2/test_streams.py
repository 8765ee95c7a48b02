"""Messages of gRPC on a stream."""

from routing.servers.faces.http2 import frames, streams
from tests.routing.servers.faces.http2.peer import Echoes, Peer, grpc_message


async def ask(echoes: Echoes, *payloads: bytes) -> tuple[bytes, dict[str, str]]:
    async with Peer(echoes.port) as peer:
        await peer.greet()
        told = b"".join(frames.frame(frames.DATA, 0, 1, payload) for payload in payloads)
        await peer.say(peer.call(1) + told + frames.frame(frames.DATA, frames.END_STREAM, 1))
        return await peer.answer(1)


async def test_messages_may_begin_and_end_anywhere_in_frames(echoes: Echoes) -> None:
    told = [grpc_message(bytes([65 + number]) * number * 100) for number in range(6)]
    whole = b"".join(told)

    body, _ = await ask(echoes, *(whole[at : at + 7] for at in range(0, len(whole), 7)))

    assert body == whole
    assert echoes.calls[0].seen == [message[5:] for message in told]


async def test_compressed_messages_are_refused(echoes: Echoes) -> None:
    _, headers = await ask(echoes, grpc_message(b"x", flag=1))

    assert headers["grpc-status"] == str(streams.UNIMPLEMENTED)
    assert echoes.calls[0].seen == []


async def test_a_message_too_large_is_refused_before_it_comes(echoes: Echoes) -> None:
    _, headers = await ask(echoes, b"\0" + (streams.MESSAGE_BYTES + 1).to_bytes(4, "big"))

    assert headers["grpc-status"] == str(streams.RESOURCE_EXHAUSTED)


async def test_a_call_without_a_message_ends(echoes: Echoes) -> None:
    body, headers = await ask(echoes)

    assert body == b""
    assert headers[":status"] == "200"
    assert headers["grpc-status"] == "0"
