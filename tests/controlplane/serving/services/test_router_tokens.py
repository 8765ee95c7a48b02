"""Who may read the file of a router's token."""

import os
from pathlib import Path

import pytest

from controlplane.serving.errors import RouterTokenError
from controlplane.serving.models import Router
from controlplane.serving.services.routers import token_of
from tests.controlplane.serving.processes import secret_file


def test_a_secret_that_a_cluster_lends_by_a_group_may_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kubelet gives the file to root and to the group of the pod, which reads it only."""
    token = secret_file(tmp_path / "token")
    router = Router(name="r", token_reference=f"file:{token}")
    token.chmod(0o440)

    with pytest.raises(RouterTokenError, match="readable by others"):
        token_of(router)
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    assert token_of(router) == token.read_text().strip()
    for mode in (0o460, 0o444):
        token.chmod(mode)
        with pytest.raises(RouterTokenError, match="readable by others"):
            token_of(router)
