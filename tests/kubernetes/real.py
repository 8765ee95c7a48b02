"""A real cluster behind the few methods that the tests of both rings use."""

import shutil
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from kubernetes import client, config

TEST_LABEL = "consort.test/run"
POLL_SECONDS = 0.2


class RealCluster:
    """The cluster of a kubeconfig. It makes namespaces with a label and deletes only those."""

    def __init__(self, kubeconfig: str) -> None:
        self.kubeconfig = kubeconfig
        self.client = config.new_client_from_config(kubeconfig)
        self.url: str = self.client.configuration.host
        self._run = uuid.uuid4().hex[:8]
        self._core = client.CoreV1Api(self.client)

    def namespace(self, prefix: str = "consort") -> str:
        """A new namespace with a random name."""
        name = f"{prefix}-{uuid.uuid4().hex[:8]}"
        labels = {TEST_LABEL: self._run}
        self._core.create_namespace(
            {"metadata": {"name": name, "labels": labels}}, _request_timeout=10
        )
        return name

    def write_credentials(self, folder: Path) -> Path:
        """A folder of credentials, as an installation keeps one per cluster."""
        folder.mkdir(parents=True)
        shutil.copy(self.kubeconfig, folder / "kubeconfig")
        (folder / "kubeconfig").chmod(0o600)
        return folder

    def until(self, found: Callable[[], Any], seconds: float = 30.0) -> Any:
        """Wait until `found` is true, and return what it found; AssertionError when it is not."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if value := found():
                return value
            time.sleep(POLL_SECONDS)
        raise AssertionError(f"not reached within {seconds} s")

    def __enter__(self) -> "RealCluster":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        selector = f"{TEST_LABEL}={self._run}"
        for found in self._core.list_namespace(label_selector=selector, _request_timeout=10).items:
            options = client.V1DeleteOptions(preconditions={"uid": found.metadata.uid})
            self._core.delete_namespace(found.metadata.name, body=options, _request_timeout=10)
        self.client.close()
