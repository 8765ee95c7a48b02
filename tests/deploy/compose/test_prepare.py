"""Secrets of one host: made once, for one user, and fitting together."""

import os
import ssl
import stat
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from controlplane.config.env import Env
from deploy.compose import prepare
from tests.deploy.compose.file import filled

OWN = (os.getuid(), os.getgid())


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """Everything, for the user of the test."""
    prepare.prepare(tmp_path, owner=OWN)
    return tmp_path / "secrets"


def test_it_makes_what_the_compose_file_names(made: Path) -> None:
    named = {Path(one["file"]).name for one in filled()["secrets"].values()}

    assert {file.name for file in made.iterdir()} == named


def test_files_are_for_their_user_alone(made: Path) -> None:
    for file in made.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o400
        assert (file.stat().st_uid, file.stat().st_gid) == OWN
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert stat.S_IMODE((made.parent / "data/router").stat().st_mode) == 0o700


def test_running_it_again_keeps_every_secret(made: Path) -> None:
    before = {file.name: file.read_bytes() for file in made.iterdir()}

    assert prepare.prepare(made.parent, owner=OWN) == []
    assert {file.name: file.read_bytes() for file in made.iterdir()} == before


def test_what_is_missing_is_made_to_fit_the_rest(made: Path) -> None:
    (made / "database-url").unlink()

    assert prepare.prepare(made.parent, owner=OWN) == ["database-url"]

    password = (made / "postgres-password").read_text().strip()
    assert urlsplit((made / "database-url").read_text()).password == password


def test_the_settings_take_them(made: Path) -> None:
    settings = filled()["services"]["web"]["environment"]
    files = {
        name: value.replace("/run/secrets", str(made))
        for name, value in settings.items()
        if value.startswith("/run/secrets")
    }
    env = Env(files)

    assert len(env.secret("SECRET_KEY")) == 64
    assert env.secret("SECRET_KEY") != env.secret("TOKEN_PEPPER")
    assert env.database("DATABASE_URL", default="")["HOST"] == "postgres"
    assert env.broker("BROKER_URL", default="").endswith("@valkey:6379/0")
    assert env.address("CACHE_URL", default="").endswith("@valkey:6379/1")


def test_workers_believe_the_routers_certificate(made: Path) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(made / "router.crt", made / "router.key")
    client = ssl.create_default_context(cafile=str(made / "authorities"))
    # As Python does from 3.13 on.
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=prepare.NAME),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]

    for end in ends * 3:
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue

    assert ends[0].version() == "TLSv1.3"


def test_ids_come_from_the_env_file(tmp_path: Path) -> None:
    file = tmp_path / ".env"

    assert prepare.read_owner(file) == (10001, 10001)
    file.write_text("# CONSORT_UID=1\nCONSORT_UID=1000\nCONSORT_GID=\n")
    assert prepare.read_owner(file) == (1000, 10001)


def test_who_may_not_give_files_away_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "chown", refuse)

    with pytest.raises(prepare.PreparationError, match="set CONSORT_UID and CONSORT_GID in"):
        prepare.prepare(tmp_path, owner=(OWN[0] + 1, OWN[1]))
