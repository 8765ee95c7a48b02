"""Where the embedded servers live."""

from pathlib import Path

import pytest

from controlplane.config.embedded.places import MAX_SOCKET_PATH, SYSTEM_HOME, places, prepare


def test_root_servers_live_outside_var(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CONSORT_VAR", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 0)

    where = places()

    assert where.as_root
    assert where.home.parent == SYSTEM_HOME
    assert where.owner == 65534


def test_two_checkouts_do_not_share(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    homes = set()
    for name in ("a", "b"):
        monkeypatch.setenv("CONSORT_VAR", str(tmp_path / name))
        homes.add(places().home)

    assert len(homes) == 2


def test_a_deep_checkout_gets_short_sockets(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CONSORT_VAR", str(tmp_path / ("deep" * 30)))
    monkeypatch.setattr("os.geteuid", lambda: 1000)

    where = places()

    assert where.home == where.var / "embedded"
    assert len(str(where.sockets)) <= MAX_SOCKET_PATH


def test_folders_are_open_to_their_owner_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CONSORT_VAR", str(tmp_path / "var"))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    where = places()

    prepare(where)
    prepare(where)

    modes = {folder.stat().st_mode & 0o777 for folder in (where.var, where.home, where.sockets)}
    assert modes == {0o700}
