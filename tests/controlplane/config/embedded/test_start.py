"""Servers are started for those only who name none."""

from pathlib import Path

import pytest

from controlplane.config.embedded.__main__ import start


@pytest.mark.parametrize("ending", ["", "_FILE"])
def test_who_names_servers_gets_none(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONSORT_VAR", str(tmp_path / "var"))
    for name in ("DATABASE_URL", "BROKER_URL"):
        for variable in (name, f"{name}_FILE"):
            monkeypatch.delenv(variable, raising=False)
        monkeypatch.setenv(f"{name}{ending}", "/run/secrets/url")

    start()

    assert list(tmp_path.iterdir()) == []
