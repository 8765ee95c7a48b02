"""References: what they may be, and which files they may lead to."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.kubernetes.connection import (
    IN_CLUSTER,
    MOST_BYTES,
    Connection,
    checked,
    is_loopback,
    is_reference,
    read_connection,
)
from inventory.kubernetes.errors import CredentialsError
from tests.routing.servers.faces.certificates import CERTIFICATES

CA = (CERTIFICATES / "a.crt").read_text()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Credentials of one cluster, `seoul`, beside a secret of somebody else."""
    place = tmp_path / "credentials" / "seoul"
    place.mkdir(parents=True)
    (place / "server").write_text("https://10.1.2.3:6443/\n")
    (place / "token").write_text("abc.def\n")
    (place / "ca.crt").write_text(CA)
    (tmp_path / "secret").write_text("of-somebody-else")
    return tmp_path / "credentials"


def refused(code: str, reference: str, folder: Path | None) -> str:
    with pytest.raises(CredentialsError) as error:
        read_connection(reference, folder)
    assert error.value.code == code
    return str(error.value)


def test_server_token_and_authority_are_read_without_line_ends(folder: Path) -> None:
    found = read_connection("seoul", folder)

    assert (found.server, found.token, found.ca) == ("https://10.1.2.3:6443", "abc.def", CA)
    assert found.context == "seoul"


def test_a_rotated_token_is_read_at_the_next_call_and_changes_the_fingerprint(folder: Path) -> None:
    before = read_connection("seoul", folder)
    (folder / "seoul" / "token").write_text("rotated")
    after = read_connection("seoul", folder)

    assert after.token == "rotated"
    assert after.fingerprint != before.fingerprint
    assert read_connection("seoul", folder).fingerprint == after.fingerprint


def test_files_of_a_mounted_secret_are_links_inside_its_folder(folder: Path) -> None:
    place = folder / "seoul"
    data = place / "..2026_12_01"
    data.mkdir()
    (place / "token").rename(data / "token")
    (place / "..data").symlink_to(data.name)
    (place / "token").symlink_to("..data/token")

    assert read_connection("seoul", folder).token == "abc.def"


def test_secrets_do_not_show_in_the_text_of_a_connection(folder: Path) -> None:
    found = read_connection("seoul", folder)

    assert "abc.def" not in repr(found)
    assert "CERTIFICATE" not in repr(found)
    assert "abc.def" not in found.fingerprint


@pytest.mark.parametrize(
    "reference",
    ["../secret", "..", ".", "seoul/../seoul", "/etc", "SEOUL", "a b", "", "a" * 101, "a\n", "%2e"],
)
def test_a_reference_that_leads_elsewhere_is_refused(folder: Path, reference: str) -> None:
    refused("reference-not-a-name", reference, folder)


@given(st.text(max_size=40))
def test_a_reference_is_one_part_of_a_path(text: str) -> None:
    if is_reference(text):
        assert Path(text).name == text
        assert text not in {"", ".", ".."}


def test_a_link_out_of_the_folder_is_not_followed(folder: Path, tmp_path: Path) -> None:
    (folder / "seoul" / "token").unlink()
    (folder / "seoul" / "token").symlink_to(tmp_path / "secret")

    assert "of-somebody-else" not in refused("file-outside", "seoul", folder)


def test_a_folder_that_is_a_link_to_elsewhere_is_none(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (folder / "busan").symlink_to(tmp_path / "elsewhere")

    refused("credentials-missing", "busan", folder)


def test_a_file_above_the_limit_is_not_read(folder: Path) -> None:
    (folder / "seoul" / "token").write_text("a" * (MOST_BYTES + 1))

    refused("file-too-large", "seoul", folder)


def test_a_pipe_does_not_hold_the_reader(folder: Path) -> None:
    (folder / "seoul" / "token").unlink()
    os.mkfifo(folder / "seoul" / "token")

    refused("file-not-regular", "seoul", folder)


def test_what_is_not_there_is_named(folder: Path) -> None:
    assert "busan" in refused("credentials-missing", "busan", folder)
    (folder / "empty").mkdir()
    assert "neither kubeconfig" in refused("credentials-incomplete", "empty", folder)
    (folder / "seoul" / "token").unlink()
    assert "'token'" in refused("file-unreadable", "seoul", folder)
    assert "CLUSTER_CREDENTIALS_DIR" in refused("no-credentials-folder", "seoul", None)


def test_bytes_that_are_no_text_are_refused(folder: Path) -> None:
    (folder / "seoul" / "token").write_bytes(b"\xff\xfe\x00")

    refused("file-not-text", "seoul", folder)


@pytest.mark.parametrize(
    ("values", "code"),
    [
        pytest.param({"server": "http://10.0.0.1"}, "server-without-tls", id="no-tls"),
        pytest.param({"server": "ftp://10.0.0.1"}, "server-not-an-address", id="scheme"),
        pytest.param({"server": "https://"}, "server-not-an-address", id="no-host"),
        pytest.param({"server": "https://a:b@h"}, "server-not-an-address", id="password"),
        pytest.param({"server": "https://h:99999"}, "server-not-an-address", id="port"),
        pytest.param({"server": "https://h/?a=1"}, "server-not-an-address", id="query"),
        pytest.param({"server": "https://h\nx"}, "server-not-an-address", id="line"),
        pytest.param({"server": "https://[::1"}, "server-not-an-address", id="bracket"),
        pytest.param({"skips_verification": True}, "verification-off", id="unverified"),
        pytest.param({"ca": "-----BEGIN"}, "authority-unreadable", id="authority"),
        pytest.param({"ca": "hello"}, "authority-unreadable", id="authority-text"),
        pytest.param({"token": "a b"}, "token-unreadable", id="token"),
        pytest.param({"token": "a\r\nX: y"}, "token-unreadable", id="header"),
        pytest.param({"certificate": CA}, "certificate-without-key", id="no-key"),
    ],
)
def test_an_unusable_part_is_refused_by_its_rule(values: dict[str, str], code: str) -> None:
    with pytest.raises(CredentialsError) as error:
        checked(Connection(**{"server": "https://10.0.0.1:6443", **values}))

    assert error.value.code == code


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_this_machine_may_be_asked_without_tls(host: str) -> None:
    named = f"[{host}]" if ":" in host else host

    assert is_loopback(host)
    assert checked(Connection(server=f"http://{named}:8080")).server == f"http://{named}:8080"


@pytest.mark.parametrize("host", ["127.0.0.1.example.com", "localhost.example", "10.0.0.1", "0"])
def test_a_name_that_looks_like_this_machine_is_not_it(host: str) -> None:
    assert not is_loopback(host)


def test_in_a_cluster_the_pods_own_token_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("pod-token")
    (tmp_path / "ca.crt").write_text(CA)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")

    found = read_connection(IN_CLUSTER, None, account=tmp_path)

    assert (found.server, found.token) == ("https://[fd00::1]:443", "pod-token")


def test_outside_a_cluster_there_is_no_such_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    with pytest.raises(CredentialsError, match="does not run in a cluster"):
        read_connection(IN_CLUSTER, None, account=tmp_path)
