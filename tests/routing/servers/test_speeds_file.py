"""The file of learned speeds: written, private, read back, and never in the way."""

import json
import logging
import stat

import pytest

from routing.servers import speeds_file
from tests.routing.servers.scripted import Stage, chat


async def test_what_was_learned_is_there_after_a_restart(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load()
    for _ in range(3):
        assert (await stage.ask(chat())).status == 200

    await stage.router.stop()
    path = stage.folder / "speeds.json"
    kept = json.loads(path.read_bytes())
    await stage.start_router()

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(kept["pools"]) == ["main"]
    (state,) = stage.router.state.directory.pools["main"].router.snapshot(now=0.0)["endpoints"]
    assert state["speeds"]["source"] == "endpoint"


@pytest.mark.parametrize("content", [b"", b"{", b'{"written_at": 1}', b'{"pools": 3}', b"\xff\xfe"])
async def test_a_file_that_cannot_be_read_is_left_out_with_a_warning(
    stage: Stage, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    await stage.engine("a")
    await stage.load()
    await stage.router.stop()
    (stage.folder / "speeds.json").write_bytes(content)

    with caplog.at_level(logging.WARNING):
        await stage.start_router()

    assert "cannot be read" in caplog.text
    assert (await stage.ask(chat())).status == 200


async def test_a_file_too_large_is_not_read(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await stage.engine("a")
    await stage.load()
    await stage.router.stop()
    monkeypatch.setattr(speeds_file, "MAX_BYTES", 10)

    await stage.start_router()

    assert "too large" in caplog.text
