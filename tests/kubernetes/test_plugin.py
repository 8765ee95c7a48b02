"""The fixture `cluster` answers, in both rings."""

from pathlib import Path
from typing import Any


def test_a_clusters_credentials_reach_its_api_server(cluster: Any, tmp_path: Path) -> None:
    folder = cluster.write_credentials(tmp_path / "lab")

    assert {path.name for path in folder.iterdir()} in ({"kubeconfig"}, {"server", "token"})
    assert cluster.url.startswith("http")


def test_each_namespace_is_new(cluster: Any) -> None:
    assert cluster.namespace() != cluster.namespace()
