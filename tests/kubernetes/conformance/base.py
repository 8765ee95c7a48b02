"""What the checks share: a client, one namespace, and ways to say what is expected.

Every check is one behaviour of an API server that Consort relies on, done with the official
client; it fails with AssertionError when the server answers in another way. Checks run in the
order in which they are listed, because later ones use what earlier ones made.
"""

import json
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from kubernetes import client, dynamic
from kubernetes.client.exceptions import ApiException

Object = dict[str, Any]
APPLY = "application/apply-patch+yaml"
POLL_SECONDS = 0.1


class Lab:
    """An API server, seen through every API that the checks use."""

    def __init__(self, api: client.ApiClient) -> None:
        self.api = api
        self.core = client.CoreV1Api(api)
        self.apps = client.AppsV1Api(api)
        self.custom = client.CustomObjectsApi(api)
        self.namespace = f"lab-{uuid.uuid4().hex[:6]}"
        self._dynamic: Any = None

    @property
    def dynamic(self) -> Any:
        """The client that learns the kinds from the server."""
        if self._dynamic is None:
            self._dynamic = dynamic.DynamicClient(self.api)
        return self._dynamic

    def ask(self, method: str, path: str, **facts: Any) -> Any:
        """A raw request; the answer with its status and text."""
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        request = self.api.param_serialize(
            method,
            path,
            header_params=headers | facts.pop("headers", {}),
            auth_settings=["BearerToken"],
            **facts,
        )
        answer = self.api.call_api(*request)
        answer.read()
        return answer

    def apply(self, body: Object, manager: str = "control-plane", **options: Any) -> Any:
        """Server-side apply."""
        kind = self.dynamic.resources.get(api_version=body["apiVersion"], kind=body["kind"])
        return self.dynamic.server_side_apply(
            kind,
            body=body,
            namespace=body["metadata"].get("namespace"),
            field_manager=manager,
            force_conflicts=options.pop("force", None),
            **options,
        )

    def config_map(self, name: str, **facts: Any) -> Any:
        """A new ConfigMap."""
        meta = {"name": name} | facts.pop("metadata", {})
        return self.core.create_namespaced_config_map(self.namespace, {"metadata": meta} | facts)

    def deployment(self, name: str = "vllm", replicas: int = 2) -> Object:
        """An engine as a Deployment."""
        container = {
            "name": "server",
            "image": "vllm/vllm-openai:v0.11.0",
            "args": ["--model", "meta-llama/Llama-3.1-8B-Instruct", "--port", "8000"],
            "ports": [{"containerPort": 8000, "name": "http"}],
            "env": [{"name": "HF_HOME", "value": "/models"}],
            "resources": {
                "limits": {"nvidia.com/gpu": "1", "memory": "64Gi"},
                "requests": {"cpu": "4", "memory": "32Gi"},
            },
            "readinessProbe": {"httpGet": {"path": "/health", "port": "http"}},
        }
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": self.namespace, "labels": {"app": name}},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {"containers": [container]},
                },
            },
        }

    def pool(self, name: str = "llama", **spec: Any) -> Object:
        """An InferencePool."""
        return {
            "apiVersion": "inference.networking.k8s.io/v1",
            "kind": "InferencePool",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "selector": {"matchLabels": {"app": "vllm"}},
                "targetPorts": [{"number": 8000}],
                "endpointPickerRef": {"name": "epp", "port": {"number": 9002}},
            }
            | spec,
        }


def refused(status: int, call: Callable[..., Any], *args: Any, **options: Any) -> Object:
    """Call; it must fail with this HTTP status. Returns the Status object."""
    with pytest.raises(ApiException) as caught:
        call(*args, **options)
    error = caught.value
    assert error.status == status, f"HTTP {error.status}, wanted {status}: {error.body}"
    body = error.body if isinstance(error.body, dict) else json.loads(error.body or "{}")
    assert body.get("kind") == "Status", f"no Status object: {body}"
    return dict(body)


def wait_for(found: Callable[[], Any], what: str, seconds: float = 20.0) -> Any:
    """What `found` returns as soon as it is true."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := found():
            return value
        time.sleep(POLL_SECONDS)
    raise AssertionError(f"not reached in {seconds} s: {what}")


def is_gone(read: Callable[..., Any], *args: Any) -> bool:
    """Whether reading answers 404."""
    try:
        read(*args)
    except ApiException as error:
        return bool(error.status == 404)
    return False
