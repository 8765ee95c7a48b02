"""Pods of the chart as containers of this machine: arguments, environment, volumes as rendered."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.deploy.containers.dockerfiles import HOME
from tests.deploy.helm.chart import container as container_of
from tests.deploy.running import stores
from tests.deploy.running.pods import Container, Mount

Manifest = dict[str, Any]
Files = Mapping[str, str]


class Kubelet:
    """Makes volumes as the kubelet does, for pods of one user."""

    def __init__(
        self, folder: Path, *, user: int, trees: Mapping[str, Path], manifests: Sequence[Manifest],
        secrets: Mapping[str, Files],
    ) -> None:  # fmt: skip
        self._folder, self._user, self._trees = folder, user, trees
        self._secrets = secrets
        self._maps: dict[str, Files] = {
            one["metadata"]["name"]: one["data"] for one in manifests if one["kind"] == "ConfigMap"
        }

    def container(self, pod: Manifest, name: str, *, claims: Sequence[Manifest] = ()) -> Container:
        """The container of a pod template with its volumes."""
        spec = container_of(pod)
        variables = self._variables(spec, name)
        volumes = {
            volume["name"]: self._volume(volume, self._folder / name / volume["name"])
            for volume in (*pod["spec"]["volumes"], *map(_claimed, claims))
        }
        image = "router" if "/router:" in spec["image"] else "control-plane"
        mounts = [
            self._mount(mount, volumes[mount["name"]], variables) for mount in spec["volumeMounts"]
        ]
        return Container(
            image=image,
            arguments=[_expanded(word, variables) for word in spec["args"]],
            environment=variables,
            mounts=[Mount(self._trees[image], HOME), *mounts, stores.mount()],
        )

    def _variables(self, spec: Manifest, name: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for source in spec.get("envFrom", ()):
            found |= self._maps[source["configMapRef"]["name"]]
        for one in spec.get("env", ()):
            assert one["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}
            found[one["name"]] = name
        return found

    def _volume(self, volume: Manifest, place: Path) -> Path:
        place.mkdir(parents=True)
        if "secret" in volume:
            source = volume["secret"]
            files = self._secrets[source["secretName"]]
            # Of root, and lent to the pod by its group: what fsGroup makes of mode 0400.
            self._fill(place, files, source.get("items"), mode=0o440)
        elif "configMap" in volume:
            source = volume["configMap"]
            self._fill(place, self._maps[source["name"]], source.get("items"), mode=0o644)
        else:
            assert "emptyDir" in volume
            os.chown(place, self._user, self._user)
        return place

    def _fill(self, place: Path, files: Files, items: Any, *, mode: int) -> None:
        wanted = items or [{"key": key, "path": key} for key in files]
        for item in wanted:
            file = place / item["path"]
            file.write_text(files[item["key"]])
            os.chown(file, 0, self._user)
            file.chmod(mode)

    def _mount(self, mount: Manifest, volume: Path, variables: Mapping[str, str]) -> Mount:
        inner = _expanded(mount.get("subPathExpr", ""), variables)
        is_writable = not mount.get("readOnly", False)
        return Mount(volume / inner if inner else volume, mount["mountPath"], is_writable)


def _claimed(claim: Manifest) -> Manifest:
    """A claim, which is an empty folder at first."""
    return {"name": claim["metadata"]["name"], "emptyDir": {}}


def _expanded(text: str, variables: Mapping[str, str]) -> str:
    for name, value in variables.items():
        text = text.replace(f"$({name})", value)
    return text
