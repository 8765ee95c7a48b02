"""Files of models on a cluster's nodes: one Job for each node, and what its output says.

A Job is pinned to its node, mounts the files (a folder of the node, a claim, or an image volume,
which the kubelet pulls) and runs this product's image, which counts them; files of an object store
are copied first. Its name holds a hash of what is wanted, so the same wish never starts a second
one, and another revision never reads an old answer. Jobs go away by themselves after a day.
"""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from controlplane.serving.targets.base import SeenFiles, WantedFiles
from inventory.kubernetes import labels
from inventory.kubernetes.errors import ClusterRefusedError, NotFoundError

if TYPE_CHECKING:
    from inventory.kubernetes.client import ClusterClient

JOB = ("batch/v1", "Job")
CONTAINER = "prefetch"
OF_JOB = "consort.dev/prefetch"
KEPT_SECONDS = 86_400
TRIES = 2
AGAIN_SECONDS = 60
"""A Job that failed is kept this long for people to read, and then tried again."""
OUTPUT_BYTES = 8192
NO_IMAGE = "PREFETCH_IMAGE is not set, so nothing can count files in a cluster."
FETCHED = frozenset({"oci", "s3"})
"""Kinds whose files have to come over a network."""
MOUNT = "/models"
KINDS = frozenset({"pvc", "node-path", "oci", "s3"})

Object = dict[str, Any]


def job_name(wanted: WantedFiles) -> str:
    """Name of the Job: equal wishes have equal names."""
    wish = [wanted.kind, wanted.uri, wanted.endpoint, wanted.folder, wanted.sha256, wanted.image]
    digest = hashlib.sha256(json.dumps([wanted.hostname, *wish]).encode()).hexdigest()[:12]
    return labels.object_name(f"prefetch-{wanted.artefact}", most=50) + f"-{digest}"


def job(wanted: WantedFiles) -> Object:
    """The Job that brings and counts the files on one node."""
    own = labels.ours(artefact=wanted.artefact, prefetch=job_name(wanted))
    return {
        "apiVersion": JOB[0],
        "kind": JOB[1],
        "metadata": {
            "name": job_name(wanted),
            "namespace": wanted.namespace,
            "labels": own,
        },
        "spec": {
            "backoffLimit": TRIES,
            "activeDeadlineSeconds": max(1, int(wanted.seconds)),
            "ttlSecondsAfterFinished": KEPT_SECONDS,
            "template": {"metadata": {"labels": own}, "spec": _pod(wanted)},
        },
    }


def seen(wanted: WantedFiles, found: Mapping[str, Any] | None, output: str) -> SeenFiles:
    """What a Job and the end of its output say; an odd object says nothing."""
    if found is None:
        return SeenFiles(sight="missing")
    status = found.get("status")
    conditions = status.get("conditions") if isinstance(status, Mapping) else None
    ended = {
        row.get("type"): row
        for row in (conditions if isinstance(conditions, list) else [])
        if isinstance(row, Mapping) and row.get("status") == "True"
    }
    if "Complete" in ended:
        return _said(output)
    if "Failed" in ended:
        detail = _said(output).detail or str(ended["Failed"].get("message") or "The Job failed.")
        return SeenFiles(sight="failed", detail=detail[:500])
    return SeenFiles(sight="fetching" if wanted.kind in FETCHED else "checking")


def _said(output: str) -> SeenFiles:
    line = next((text for text in reversed(output.splitlines()) if text.strip()), "")
    try:
        said = json.loads(line)
        size, speed = said["size_bytes"], said["read_bytes_per_second"]
        if said["sight"] not in {"there", "failed"} or not all(
            value is None or isinstance(value, int) for value in (size, speed)
        ):
            raise ValueError(said["sight"])
        return SeenFiles(
            sight=said["sight"],
            size_bytes=size,
            sha256=str(said["sha256"])[:64],
            read_bytes_per_second=speed,
            detail=str(said["detail"])[:500],
        )
    except (ValueError, KeyError, TypeError):
        return SeenFiles(sight="failed", detail="The Job ended, and its output has no result.")


def bring(client: "ClusterClient", wanted: WantedFiles, *, now: datetime) -> SeenFiles:
    """Create the Job unless it is there, and say what is known. Raises ClusterError."""
    if not wanted.image:
        return SeenFiles(sight="failed", detail=NO_IMAGE)
    name, namespace = job_name(wanted), wanted.namespace
    try:
        found = client.get(*JOB, name, namespace)
    except NotFoundError:
        try:
            client.create(job(wanted))
        except ClusterRefusedError as error:
            # Another run was a moment faster.
            if error.reason != "AlreadyExists":
                raise
        return SeenFiles(sight="fetching" if wanted.kind in FETCHED else "checking")
    own = (found["metadata"].get("labels") or {}).get(labels.MANAGED_BY) == labels.MANAGER
    if not own:
        return SeenFiles(sight="failed", detail=f"Job {name} is somebody else's; it is left alone.")
    told = seen(wanted, found, _output(client, name, namespace, found))
    if told.sight == "failed" and _ended_before(found, now - timedelta(seconds=AGAIN_SECONDS)):
        client.delete(*JOB, name, namespace, uid=found["metadata"].get("uid"))
    return told


def _output(client: "ClusterClient", name: str, namespace: str, found: Object) -> str:
    """The end of the output of the Job's latest Pod, once the Job has ended; else ""."""
    status = found.get("status")
    if not isinstance(status, Mapping) or not status.get("conditions"):
        return ""
    pods = client.list("v1", "Pod", namespace=namespace, labels=f"{OF_JOB}={name}")
    names = sorted(
        (str(pod["metadata"].get("creationTimestamp")), pod["metadata"]["name"])
        for pod in pods.items
    )
    if not names:
        return ""
    with suppress(ClusterRefusedError):
        return client.logs(namespace, names[-1][1], CONTAINER, bytes=OUTPUT_BYTES)
    return ""


def _ended_before(found: Object, then: datetime) -> bool:
    """True if the Job ended before that time, so that it may be tried again."""
    for row in found["status"].get("conditions") or []:
        if row.get("type") in {"Failed", "Complete"} and row.get("status") == "True":
            try:
                at = datetime.fromisoformat(str(row.get("lastTransitionTime")))
            except ValueError:
                return False
            return at.tzinfo is not None and at < then
    return False


def _pod(wanted: WantedFiles) -> Object:
    volume, mount, read_only = _volume(wanted)
    words = ["python", "-m", "inventory.prefetch", "--folder", mount]
    words += ["--most-seconds", f"{wanted.seconds:g}"]
    if wanted.kind == "s3":
        words += ["--source", wanted.uri, "--endpoint", wanted.endpoint]
    container: Object = {
        "name": CONTAINER,
        "image": wanted.image,
        "command": words,
        "volumeMounts": [{"name": "files", "mountPath": mount, "readOnly": read_only}],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }
    if wanted.kind == "s3" and wanted.secret:
        container["env"] = [
            _secret(name, wanted.secret) for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
        ]
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "nodeSelector": {"kubernetes.io/hostname": wanted.hostname},
        # Nodes with accelerators are commonly tainted; files go to the node that was chosen.
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
        "volumes": [{"name": "files", **volume}],
    }


def _volume(wanted: WantedFiles) -> tuple[Object, str, bool]:
    """The volume, where it is mounted, and whether nothing may be written there."""
    if wanted.kind == "pvc":
        claim = {"claimName": wanted.uri, "readOnly": True}
        return {"persistentVolumeClaim": claim}, MOUNT, True
    if wanted.kind == "oci":
        return {"image": {"reference": wanted.uri, "pullPolicy": "IfNotPresent"}}, MOUNT, True
    is_copied = wanted.kind == "s3"
    kind = "DirectoryOrCreate" if is_copied else "Directory"
    return {"hostPath": {"path": wanted.folder, "type": kind}}, MOUNT, not is_copied


def _secret(variable: str, secret: str) -> Object:
    return {"name": variable, "valueFrom": {"secretKeyRef": {"name": secret, "key": variable}}}
