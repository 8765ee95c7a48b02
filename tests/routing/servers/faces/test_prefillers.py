"""The list of prefill endpoints: its two forms, and its following of the file."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.core.document import encode_document
from routing.servers.faces.prefillers import HostListError, Prefillers, host_port
from routing.servers.origin import Origin
from tests.routing.servers.faces.clock import Clock
from tests.routing.servers.scripted import Engine, answers, document

P = Origin("10.0.0.1", 8000)


def replaced(path: Path, content: str | bytes) -> None:
    """Another file takes the place of the one before, as editors and mounted volumes do it."""
    fresh = path.with_suffix(".new")
    fresh.write_bytes(content if isinstance(content, bytes) else content.encode())
    os.replace(fresh, path)


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("10.0.0.1:8000", P),
        ("[fd00::1]:8000", Origin("fd00::1", 8000)),
        ("Prefill-0.pool.svc:80", Origin("prefill-0.pool.svc", 80)),
        ("10.0.0.1", None),
        ("10.0.0.1:", None),
        ("10.0.0.1:0", None),
        ("10.0.0.1:65536", None),
        ("10.0.0.1:99999999999999999999", None),
        ("10.0.0.1:8000/path", None),
        ("user@10.0.0.1:8000", None),
        ("fd00::1:8000", None),
        ("[10.0.0.1]:8000", None),
        ("10.0.0.1:٨٠", None),
        ("a b:80", None),
        ("", None),
    ],
)
def test_an_address_is_host_and_port(text: str, origin: Origin | None) -> None:
    assert host_port(text) == origin


@given(st.text(max_size=40))
def test_any_text_is_read_or_not(text: str) -> None:
    origin = host_port(text)

    assert origin is None or host_port(str(origin)) == origin


def test_without_a_file_nobody_is_allowed() -> None:
    assert not Prefillers(None, now=Clock()).allows(P)


def test_lines_name_an_endpoint_or_a_host(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_text("# prefill\n10.0.0.1:8000\n\n10.0.0.2  # every port\n")

    allowed = Prefillers(path, now=Clock())

    assert allowed.allows(P)
    assert not allowed.allows(Origin("10.0.0.1", 8001))
    assert allowed.allows(Origin("10.0.0.2", 9))
    assert not allowed.allows(Origin("10.0.0.3", 8000))


def test_a_pool_document_allows_the_endpoints_that_prefill(tmp_path: Path) -> None:
    path = tmp_path / "pool.json"
    engines = [Engine("p", answers, port=7001), Engine("d", answers, port=7002)]
    path.write_bytes(encode_document(document(engines, roles={"p": "prefill", "d": "decode"})))

    allowed = Prefillers(path, now=Clock())

    assert allowed.allows(Origin("127.0.0.1", 7001))
    assert not allowed.allows(Origin("127.0.0.1", 7002))


def test_the_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    path, clock = tmp_path / "list", Clock()
    path.write_text("10.0.0.9:1\n")
    allowed = Prefillers(path, now=clock)
    assert not allowed.allows(P)

    replaced(path, "10.0.0.1:8000\n")
    clock.now = 2.0

    assert allowed.allows(P)
    assert not allowed.allows(Origin("10.0.0.9", 1))


@pytest.mark.parametrize("content", [b"not an address\n", b"{}", b"\xff\xfe"])
def test_a_file_that_cannot_be_used_changes_nothing_and_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    path, clock = tmp_path / "list", Clock()
    path.write_text("10.0.0.1:8000\n")
    allowed = Prefillers(path, now=clock)

    replaced(path, content)
    for clock.now in (2.0, 4.0, 6.0):
        assert allowed.allows(P)

    assert len(caplog.records) == 1


def test_a_file_that_is_gone_changes_nothing_until_it_is_back(tmp_path: Path) -> None:
    path, clock = tmp_path / "list", Clock()
    path.write_text("10.0.0.1:8000\n")
    allowed = Prefillers(path, now=clock)

    path.unlink()
    clock.now = 2.0
    assert allowed.allows(P)
    path.write_text("10.0.0.2:8000\n")
    clock.now = 4.0

    assert not allowed.allows(P)


def test_a_wrong_file_at_the_start_is_an_error_that_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_text("10.0.0.1:8000\nhttp://10.0.0.2:8000\n")

    with pytest.raises(HostListError, match=r"Line 2 is 'http://10.0.0.2:8000'"):
        Prefillers(path, now=Clock())
