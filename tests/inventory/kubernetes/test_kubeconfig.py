"""A kubeconfig is read as data: programs, proxies and files elsewhere are refused."""

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from inventory.kubernetes.connection import read_connection
from inventory.kubernetes.errors import ClusterError, CredentialsError
from inventory.kubernetes.kubeconfig import read_kubeconfig
from tests.routing.servers.faces.certificates import CERTIFICATES

CA = (CERTIFICATES / "a.crt").read_text()
KEY = (CERTIFICATES / "a.key").read_text()


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def kubeconfig(
    *, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, **top: Any
) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "seoul",
            "contexts": [
                {"name": "other", "context": {"cluster": "other", "user": "other"}},
                {"name": "seoul", "context": {"cluster": "c", "user": "u"}},
            ],
            "clusters": [
                {
                    "name": "c",
                    "cluster": {
                        "server": "https://10.0.0.1:6443",
                        "certificate-authority-data": encoded(CA),
                        **(cluster or {}),
                    },
                }
            ],
            "users": [{"name": "u", "user": {"token": "abc"} if user is None else user}],
            **top,
        }
    )


def refused(text: str, folder: Path) -> CredentialsError:
    with pytest.raises(CredentialsError) as error:
        read_kubeconfig(text, folder, "seoul")
    return error.value


def test_the_current_context_counts(tmp_path: Path) -> None:
    found = read_kubeconfig(kubeconfig(), tmp_path, "seoul")

    assert (found.server, found.token, found.context) == ("https://10.0.0.1:6443", "abc", "seoul")
    assert found.ca == CA


def test_the_only_context_counts_when_none_is_current(tmp_path: Path) -> None:
    text = kubeconfig(
        **{"current-context": "", "contexts": [{"name": "a", "context": {"cluster": "c"}}]}
    )

    found = read_kubeconfig(text, tmp_path, "seoul")

    assert (found.context, found.token) == ("a", "")


def test_it_is_found_by_its_reference(tmp_path: Path) -> None:
    (tmp_path / "seoul").mkdir()
    (tmp_path / "seoul" / "kubeconfig").write_text(kubeconfig())

    assert read_connection("seoul", tmp_path).token == "abc"


def test_a_client_certificate_comes_inline_or_from_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "client.crt").write_text(CA)
    (tmp_path / "client.key").write_text(KEY)
    files = {"client-certificate": "client.crt", "client-key": "client.key"}
    inline = {"client-certificate-data": encoded(CA), "client-key-data": encoded(KEY)}

    for user in (files, inline):
        found = read_kubeconfig(kubeconfig(user=user), tmp_path, "seoul")
        assert (found.certificate, found.key) == (CA, KEY)


def test_a_token_comes_from_a_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")

    found = read_kubeconfig(kubeconfig(user={"tokenFile": "token"}), tmp_path, "seoul")

    assert found.token == "from-file"


@pytest.mark.parametrize("key", ["tokenFile", "client-certificate", "client-key"])
@pytest.mark.parametrize("name", ["../secret", "/etc/hostname"])
def test_a_file_elsewhere_is_not_read(tmp_path: Path, key: str, name: str) -> None:
    (tmp_path / "secret").write_text("of-somebody-else")
    place = tmp_path / "seoul"
    place.mkdir()

    assert refused(kubeconfig(user={key: name}), place).code == "file-outside"


@pytest.mark.parametrize(
    ("user", "code"),
    [
        pytest.param(
            {"exec": {"command": "/bin/sh", "args": ["-c", "touch ran"]}},
            "kubeconfig-runs",
            id="exec",
        ),
        pytest.param({"auth-provider": {"name": "gcp"}}, "kubeconfig-runs", id="auth-provider"),
        pytest.param({"username": "a", "password": "b"}, "kubeconfig-password", id="password"),
        pytest.param({"token": "a", "as": "admin"}, "kubeconfig-impersonates", id="as"),
        pytest.param({"token": "a", "as-groups": ["x"]}, "kubeconfig-impersonates", id="groups"),
        pytest.param({"token": 5}, "kubeconfig-wrong-type", id="token-is-a-number"),
        pytest.param({"token": ["a"]}, "kubeconfig-wrong-type", id="token-is-a-list"),
        pytest.param({"client-key-data": "%%%"}, "kubeconfig-not-base64", id="base64"),
        pytest.param({"client-certificate-data": encoded(CA)}, "certificate-without-key", id="key"),
    ],
)
def test_a_user_that_is_not_a_token_or_certificate_is_refused(
    tmp_path: Path, user: dict[str, Any], code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert refused(kubeconfig(user=user), tmp_path).code == code
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("cluster", "code"),
    [
        pytest.param({"insecure-skip-tls-verify": True}, "verification-off", id="unverified"),
        pytest.param({"proxy-url": "http://p:8080"}, "kubeconfig-proxy-url", id="proxy"),
        pytest.param({"server": "http://10.0.0.1"}, "server-without-tls", id="no-tls"),
        pytest.param({"server": None}, "server-not-an-address", id="no-server"),
        pytest.param({"server": {"a": 1}}, "kubeconfig-wrong-type", id="server-is-a-map"),
        pytest.param(
            {"certificate-authority-data": encoded("no certificate")},
            "authority-unreadable",
            id="authority",
        ),
    ],
)
def test_a_cluster_that_cannot_be_trusted_is_refused(
    tmp_path: Path, cluster: dict[str, Any], code: str
) -> None:
    assert refused(kubeconfig(cluster=cluster), tmp_path).code == code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param("", "kubeconfig-empty", id="empty"),
        pytest.param("[1, 2]", "kubeconfig-empty", id="list"),
        pytest.param("a: [", "kubeconfig-not-yaml", id="no-yaml"),
        pytest.param("!!python/object/apply:os.system ['true']", "kubeconfig-not-yaml", id="tag"),
        pytest.param("current-context: a", "kubeconfig-entry-missing", id="no-contexts"),
        pytest.param("contexts: 5\ncurrent-context: a", "kubeconfig-entry-missing", id="number"),
        pytest.param("current-context: {a: b}", "kubeconfig-entry-missing", id="name-is-a-map"),
        pytest.param(
            kubeconfig(users=[{"name": "u", "user": "root"}]), "kubeconfig-entry-missing", id="text"
        ),
        pytest.param(kubeconfig(clusters=[]), "kubeconfig-entry-missing", id="no-clusters"),
    ],
)
def test_what_is_no_kubeconfig_is_refused(tmp_path: Path, text: str, code: str) -> None:
    assert refused(text, tmp_path).code == code


def test_anchors_that_unfold_to_billions_cost_nothing(tmp_path: Path) -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"] + [
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)
    ]

    assert refused("\n".join(levels), tmp_path).code == "kubeconfig-entry-missing"


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read_kubeconfig(text, Path("/nonexistent"), "seoul")
    except ClusterError as error:
        assert len(str(error)) < 1000  # noqa: PT017 - either is right
