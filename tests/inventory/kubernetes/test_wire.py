"""Bounds of a call: time, bytes, redirections, certificates."""

import time
from dataclasses import replace

import pytest

from inventory.kubernetes.connection import Connection
from inventory.kubernetes.errors import (
    AnswerError,
    ClusterError,
    ClusterUnavailableError,
    CredentialsError,
)
from inventory.kubernetes.wire import MOST_BYTES, MOST_LINE_BYTES, Call, Wire
from tests.inventory.kubernetes.answering import Asked, answering
from tests.routing.servers.faces.certificates import CERTIFICATES

GET = Call("GET", "/version")


def pem(name: str) -> str:
    return (CERTIFICATES / name).read_text()


def trickle(asked: Asked) -> None:
    """A byte now and then, so that no single read times out."""
    asked.send_response(200)
    asked.send_header("Content-Length", "1000")
    asked.end_headers()
    for _ in range(200):
        asked.wfile.write(b" ")
        asked.wfile.flush()
        time.sleep(0.05)


def headers_by_the_letter(asked: Asked) -> None:
    for letter in b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 200:
        asked.wfile.write(bytes([letter]))
        asked.wfile.flush()
        time.sleep(0.05)


def test_a_token_is_sent_and_json_comes_back() -> None:
    with answering(lambda asked: asked.send({"a": 1})) as server:
        answer = Wire(server.connection, timeout=5).json(GET)

        assert answer == {"a": 1}
        assert server.asked[0][2]["Authorization"] == "Bearer secret-token"


def test_a_redirection_is_not_followed_so_the_token_goes_nowhere_else() -> None:
    with (
        answering(lambda asked: asked.send({})) as other,
        answering(
            lambda asked: asked.send(b"", 302, {"Location": f"{other.url}/version"})
        ) as server,
    ):
        with pytest.raises(AnswerError, match="redirections"):
            Wire(server.connection, timeout=5).json(GET)

        assert other.asked == []


def test_a_call_that_failed_is_not_sent_again() -> None:
    with answering(lambda asked: asked.send({"kind": "Status"}, 503)) as server:
        with pytest.raises(ClusterUnavailableError):
            Wire(server.connection, timeout=5).json(GET)

        assert len(server.asked) == 1


def test_a_server_that_accepts_and_says_nothing_costs_the_time_out() -> None:
    with answering(lambda asked: time.sleep(1.5)) as server:
        started = time.monotonic()
        with pytest.raises(ClusterUnavailableError, match="in time"):
            Wire(server.connection, timeout=0.3).json(GET)

    assert time.monotonic() - started < 1.4


def test_a_server_that_sends_a_byte_now_and_then_costs_the_time_out() -> None:
    with answering(trickle) as server:
        started = time.monotonic()
        with pytest.raises(ClusterUnavailableError, match="too long"):
            Wire(server.connection, timeout=0.5).json(GET)

    assert time.monotonic() - started < 3


@pytest.mark.parametrize("certificate", ["", "a"])
def test_a_server_that_sends_its_headers_letter_by_letter_costs_the_time_out(
    certificate: str,
) -> None:
    with answering(headers_by_the_letter, certificate=certificate) as server:
        connection = replace(server.connection, ca=pem("a.crt") if certificate else "")
        started = time.monotonic()
        with pytest.raises(ClusterUnavailableError, match="in time"):
            Wire(connection, timeout=0.5).json(GET)

    assert time.monotonic() - started < 3


def test_nobody_listens() -> None:
    with answering(lambda asked: asked.send({})) as server:
        connection = server.connection

    with pytest.raises(ClusterUnavailableError, match="refused") as failure:
        Wire(connection, timeout=1).json(GET)
    assert failure.value.status is None


def test_an_answer_above_the_limit_is_not_read_on() -> None:
    with (
        answering(lambda asked: asked.send(b" " * (MOST_BYTES + 1))) as server,
        pytest.raises(AnswerError, match="more than"),
    ):
        Wire(server.connection, timeout=20).json(GET)


def test_a_packed_answer_is_refused_unopened() -> None:
    packed = {"Content-Encoding": "gzip"}
    with (
        answering(lambda asked: asked.send(b"\x1f\x8b", headers=packed)) as server,
        pytest.raises(AnswerError, match="compressed"),
    ):
        Wire(server.connection, timeout=5).json(GET)


@pytest.mark.parametrize("body", [b"", b"<html>", b"{", b"[" * 100_000, b"\xff\xfe", b"NaN"])
def test_what_is_no_json_is_refused(body: bytes) -> None:
    with (
        answering(lambda asked: asked.send(body)) as server,
        pytest.raises(AnswerError, match="not JSON"),
    ):
        Wire(server.connection, timeout=5).json(GET)


def test_an_answer_that_is_cut_is_no_answer() -> None:
    def cut(asked: Asked) -> None:
        asked.send(b'{"a":', headers={"Content-Length": "100"})
        asked.close_connection = True

    with answering(cut) as server, pytest.raises(ClusterUnavailableError):
        Wire(server.connection, timeout=5).json(GET)


def test_what_is_no_http_is_no_answer() -> None:
    def rubbish(asked: Asked) -> None:
        asked.wfile.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
        asked.close_connection = True

    with answering(rubbish) as server, pytest.raises(ClusterUnavailableError):
        Wire(server.connection, timeout=5).json(GET)


def test_lines_end_quietly_when_the_stream_is_cut_or_silent() -> None:
    def cut(asked: Asked) -> None:
        asked.send(b'{"a":1}\n{"b":2}\n{"c"', headers={"Content-Length": "1000"})
        asked.close_connection = True

    with answering(cut) as server:
        assert list(Wire(server.connection, timeout=5).lines(GET, 1)) == [b'{"a":1}', b'{"b":2}']

    def silent(asked: Asked) -> None:
        asked.send(b'{"a":1}\n', headers={"Content-Length": "1000"})
        time.sleep(1)

    with answering(silent) as server:
        assert list(Wire(server.connection, timeout=5).lines(GET, 0.3)) == [b'{"a":1}']


def test_a_line_without_an_end_is_not_collected_for_ever() -> None:
    endless = b" x" * (MOST_LINE_BYTES // 2 + 100_000)
    with (
        answering(lambda asked: asked.send(endless)) as server,
        pytest.raises(AnswerError, match="line"),
    ):
        list(Wire(server.connection, timeout=20).lines(GET, 20))


def test_a_certificate_of_the_given_authority_is_accepted() -> None:
    with answering(lambda asked: asked.send({"a": 1}), certificate="a") as server:
        connection = Connection(server=server.url, ca=pem("a.crt"), tls_server_name="picker.test")

        assert Wire(connection, timeout=5).json(GET) == {"a": 1}


@pytest.mark.parametrize("authority", ["b.crt", None])
def test_a_certificate_of_another_authority_is_refused(authority: str | None) -> None:
    with answering(lambda asked: asked.send({"a": 1}), certificate="a") as server:
        ca = pem(authority) if authority else ""
        connection = Connection(
            server=server.url, ca=ca, token="secret", tls_server_name="picker.test"
        )
        with pytest.raises(ClusterUnavailableError, match="authority did not sign"):
            Wire(connection, timeout=5).json(GET)

        assert server.asked == []


def test_the_address_stands_in_the_certificate() -> None:
    with answering(lambda asked: asked.send({"a": 1}), certificate="a") as server:
        connection = Connection(server=server.url, ca=pem("a.crt"))

        assert Wire(connection, timeout=5).json(GET) == {"a": 1}


def test_a_certificate_for_another_name_is_refused() -> None:
    with answering(lambda asked: asked.send({"a": 1}), certificate="a") as server:
        connection = Connection(server=server.url, ca=pem("a.crt"), tls_server_name="other.test")
        with pytest.raises(ClusterUnavailableError, match="another name"):
            Wire(connection, timeout=5).json(GET)


def test_a_client_certificate_is_shown_to_a_server_that_asks_for_one() -> None:
    with answering(lambda asked: asked.send({"a": 1}), certificate="a", asks_for="b") as server:
        without = Connection(server=server.url, ca=pem("a.crt"))
        shown = replace(without, certificate=pem("b.crt"), key=pem("b.key"))

        assert Wire(shown, timeout=5).json(GET) == {"a": 1}
        with pytest.raises(ClusterUnavailableError):
            Wire(without, timeout=5).json(GET)


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
def test_checking_may_be_off_for_this_machine() -> None:
    with answering(lambda asked: asked.send({"a": 1}), certificate="a") as server:
        connection = Connection(server=server.url, skips_verification=True)

        assert Wire(connection, timeout=5).json(GET) == {"a": 1}


def test_a_client_certificate_with_the_key_of_another_is_refused() -> None:
    connection = Connection(
        server="https://127.0.0.1:1", certificate=pem("a.crt"), key=pem("b.key")
    )

    with pytest.raises(CredentialsError, match="do not belong together"):
        Wire(connection, timeout=1)
    assert Wire(replace(connection, key=pem("a.key")), timeout=1)


def test_a_key_with_a_password_is_refused_and_nobody_is_asked_for_it() -> None:
    connection = Connection(
        server="https://127.0.0.1:1", certificate=pem("a.crt"), key=pem("locked.key")
    )

    with pytest.raises(ClusterError):
        Wire(connection, timeout=1)
