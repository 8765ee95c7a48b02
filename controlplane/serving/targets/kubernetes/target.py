"""Engines in Kubernetes clusters: objects applied with our field manager, never by force.

One engine is one object that makes one Pod, so a wave ends exactly the engine it means. A pass over
a pool costs one list of Deployments and one of Pods for each cluster; what is as it should be is
not written again.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import httpx
from django.utils import timezone

from controlplane.serving import outward
from controlplane.serving.targets.base import (
    Capabilities,
    SeenCondition,
    SeenEngine,
    SeenFiles,
    TargetRefusedError,
    WantedEngine,
    WantedFiles,
)
from controlplane.serving.targets.kubernetes import prefetching, stamping
from controlplane.serving.targets.kubernetes.pods import CONTAINER, NODE_LOST, look
from controlplane.serving.targets.kubernetes.reaching import reached
from controlplane.serving.targets.kubernetes.seeing import Sight, see
from inventory.kubernetes import labels
from inventory.kubernetes.errors import (
    ClusterError,
    ClusterRefusedError,
    NotFoundError,
    StaleError,
)

if TYPE_CHECKING:
    from inventory.kubernetes.client import ClusterClient

TRY_TIMEOUT = httpx.Timeout(2.0, connect=1.0)
AT_ONCE = 8
MOST_EVENTS = 2000
MOST_OBJECTS = 20_000

Object = dict[str, Any]


class Kubernetes:
    """Each method asks the cluster that the engine names."""

    slug = "kubernetes"

    def apply(self, engine: WantedEngine, *, fencing_token: int) -> None:
        """Server-side apply of the engine's objects, the one that makes its Pod last.

        A field that somebody else holds is a refusal that names them. An object that is still being
        deleted is waited for: the next pass finds it gone.
        """
        runner = stamping.runner(engine.manifests)
        if runner is None:
            sentence = f"Nothing was rendered for engine {engine.name}; make a plan for it again."
            raise TargetRefusedError(sentence, reason="NotRendered")
        with reached(engine.cluster) as client:
            found = _own(client, engine, runner, fencing_token)
            if found is not None and found["metadata"].get("deletionTimestamp"):
                return
            for manifest in engine.manifests:
                if manifest is not runner:
                    client.apply(manifest)
            _apply_runner(client, engine, runner, fencing_token, found)

    def observe(self, engines: Sequence[WantedEngine]) -> dict[str, SeenEngine]:
        """What the clusters say of each engine, by name."""
        places: dict[tuple[str, str, str], list[WantedEngine]] = defaultdict(list)
        seen: dict[str, SeenEngine] = {}
        for engine in engines:
            runner = stamping.runner(engine.manifests)
            if runner is None:
                seen[engine.name] = SeenEngine(name=engine.name, state="absent")
            else:
                place = (engine.cluster, runner["metadata"]["namespace"], engine.pool)
                places[place].append(engine)
        for (cluster, namespace, pool), wanted in sorted(places.items()):
            with reached(cluster) as client:
                sights = _Look(client, namespace, pool, _kinds(wanted)).at(wanted)
            seen |= {engine.name: engine for engine in _tried(sights)}
        return seen

    def delete(self, engine: WantedEngine, *, fencing_token: int) -> None:
        """Delete what carries the engine's label, each object by its uid."""
        runner = stamping.runner(engine.manifests)
        if runner is None:
            return
        namespace = runner["metadata"]["namespace"]
        kinds = dict.fromkeys((row["apiVersion"], row["kind"]) for row in engine.manifests)
        with reached(engine.cluster) as client:
            _own(client, engine, runner, fencing_token)
            for api_version, kind in kinds:
                listed = client.list(
                    api_version, kind, namespace=namespace, labels=_of_engine(engine.name)
                )
                for found in listed.items:
                    meta = found["metadata"]
                    # Another object that took the name since is not the one that was read.
                    with suppress(StaleError):
                        client.delete(
                            api_version, kind, meta["name"], namespace, uid=meta.get("uid")
                        )

    def logs(self, engine: WantedEngine, *, size: int) -> str:
        """The end of the output of the engine's latest Pod; before its start, of its last life."""
        runner = stamping.runner(engine.manifests)
        if runner is None:
            return ""
        namespace = runner["metadata"]["namespace"]
        with reached(engine.cluster) as client:
            pods = client.list("v1", "Pod", namespace=namespace, labels=_of_engine(engine.name))
            seen = [look(pod) for pod in pods.items]
            if not seen:
                return "There is no Pod of this engine, so there is no output."
            pod = max(seen, key=lambda one: (not one.is_ending, one.created, one.name))
            try:
                return client.logs(
                    namespace, pod.name, CONTAINER, bytes=size, previous=pod.has_ended
                )
            except ClusterRefusedError as error:
                return f"The cluster has no output of it: {error.message}"

    def prefetch(self, files: Sequence[WantedFiles]) -> dict[str, SeenFiles]:
        """One Job for each node; see `prefetching`."""
        by_cluster: dict[str, list[WantedFiles]] = defaultdict(list)
        for wanted in files:
            by_cluster[wanted.cluster].append(wanted)
        found: dict[str, SeenFiles] = {}
        for cluster, all_wanted in sorted(by_cluster.items()):
            with reached(cluster) as client:
                now = timezone.now()
                found |= {
                    wanted.node: prefetching.bring(client, wanted, now=now) for wanted in all_wanted
                }
        return found

    def capabilities(self) -> Capabilities:
        """Clusters start and restart engines themselves."""
        return Capabilities(
            starts_engines=True,
            sentence="Engines run as Pods of a cluster.",
            restarts_engines=True,
            fetches=prefetching.FETCHED,
            checks=prefetching.KINDS,
        )


class _Look:
    """One look at a namespace for the engines of a pool."""

    def __init__(
        self, client: "ClusterClient", namespace: str, pool: str, kinds: set[tuple[str, str]]
    ) -> None:
        self._client, self._namespace = client, namespace
        of_pool = labels.selector(
            {labels.MANAGED_BY: labels.MANAGER, labels.POOL: labels.label_value(pool)}
        )
        self._runners: dict[str, list[Object]] = {}
        for api_version, kind in sorted(kinds):
            self._runners |= self._by_engine(api_version, kind, of_pool)
        self._pods = self._by_engine("v1", "Pod", of_pool)
        self._events: list[Object] | None = None

    def at(self, engines: Sequence[WantedEngine]) -> list[Sight]:
        """What is true of each engine, in their order."""
        return [self._at(engine) for engine in engines]

    def _at(self, engine: WantedEngine) -> Sight:
        runner = stamping.runner(engine.manifests)
        key = labels.label_value(engine.name)
        found = next(iter(self._runners.get(key, [])), None)
        pods = self._pods.get(key, [])
        if runner is not None and found is None:
            found = self._alone(runner)
            if found is not None and not _is_of(found, engine.name):
                return Sight(_not_ours(engine.name, found))
            # Not under this pool's label: it is gone, or was applied for another pool.
            pods = self._by_engine("v1", "Pod", _of_engine(engine.name)).get(key, [])
        sight = see(engine.name, wanted=runner, found=found, pods=pods)
        if not sight.is_unexplained:
            return sight
        return see(engine.name, wanted=runner, found=found, pods=pods, events=self._warnings())

    def _by_engine(self, api_version: str, kind: str, selector: str) -> dict[str, list[Object]]:
        listed = self._client.list(
            api_version, kind, namespace=self._namespace, labels=selector, most=MOST_OBJECTS
        )
        found: dict[str, list[Object]] = defaultdict(list)
        for item in listed.items:
            name = (item["metadata"].get("labels") or {}).get(labels.WORKLOAD, "")
            found[name].append(item)
        return found

    def _alone(self, runner: Mapping[str, Any]) -> Object | None:
        meta = runner["metadata"]
        try:
            return self._client.get(
                runner["apiVersion"], runner["kind"], meta["name"], meta["namespace"]
            )
        except NotFoundError:
            return None

    def _warnings(self) -> list[Object]:
        """Warnings of the namespace; none when the cluster does not let us read them."""
        if self._events is None:
            self._events = []
            with suppress(ClusterError):
                self._events = self._client.list(
                    "v1", "Event", namespace=self._namespace, fields="type=Warning",
                    most=MOST_EVENTS,
                ).items  # fmt: skip
        return self._events


def _kinds(engines: Sequence[WantedEngine]) -> set[tuple[str, str]]:
    """Kinds of the objects that make the engines' Pods; mostly Deployment alone."""
    runners = [stamping.runner(engine.manifests) for engine in engines]
    return {(row["apiVersion"], row["kind"]) for row in runners if row is not None}


def _own(
    client: "ClusterClient", engine: WantedEngine, runner: Mapping[str, Any], token: int
) -> Object | None:
    """The object as it is, when this holder may act on it; None when it is not there."""
    meta = runner["metadata"]
    try:
        found = client.get(runner["apiVersion"], runner["kind"], meta["name"], meta["namespace"])
    except NotFoundError:
        return None
    if not _is_of(found, engine.name):
        raise TargetRefusedError(_whose(found), reason="NotOurs")
    if stamping.token_of(found) > token:
        sentence = (
            f"Fencing token {token} is older than {stamping.token_of(found)}, which was seen for "
            f"'{engine.name}': another holder acts on it."
        )
        raise TargetRefusedError(sentence, reason="Fenced", fenced=True)
    return found


def _apply_runner(
    client: "ClusterClient",
    engine: WantedEngine,
    runner: Mapping[str, Any],
    token: int,
    found: Object | None,
) -> None:
    """Apply to the object that was read and to no later one; read once more if it changed."""
    marked = stamping.with_holder(runner, generation=engine.generation, token=token)
    try:
        client.apply(_read_as(marked, found))
    except StaleError:
        found = _own(client, engine, runner, token)
        client.apply(_read_as(marked, found))


def _read_as(manifest: Object, found: Object | None) -> Object:
    """With the version that was read, the server refuses when somebody wrote since."""
    version = found["metadata"].get("resourceVersion") if found else None
    meta = manifest["metadata"] | ({"resourceVersion": version} if version else {})
    return manifest | {"metadata": meta}


def _of_engine(name: str) -> str:
    return labels.selector(
        {labels.MANAGED_BY: labels.MANAGER, labels.WORKLOAD: labels.label_value(name)}
    )


def _is_of(found: Mapping[str, Any], name: str) -> bool:
    told = found["metadata"].get("labels") or {}
    is_ours = told.get(labels.MANAGED_BY) == labels.MANAGER
    return is_ours and told.get(labels.WORKLOAD) == labels.label_value(name)


def _whose(found: Mapping[str, Any]) -> str:
    meta = found["metadata"]
    told = meta.get("labels") or {}
    return (
        f"{found.get('kind')} {meta['name']} in namespace {meta.get('namespace')} is not this "
        f"engine's: {labels.MANAGED_BY} is '{told.get(labels.MANAGED_BY, '')}' and "
        f"{labels.WORKLOAD} is '{told.get(labels.WORKLOAD, '')}'. It was not touched: rename or "
        "delete it, or choose another namespace."
    )


def _not_ours(name: str, found: Mapping[str, Any]) -> SeenEngine:
    told = SeenCondition(type="Started", status="Unknown", reason="NotOurs", message=_whose(found))
    return SeenEngine(name=name, state="unknown", failure=_whose(found), conditions=(told,))


def _tried(sights: Sequence[Sight]) -> list[SeenEngine]:
    """Engines of silent nodes are tried where they answered; those that do not are dead."""
    suspects = [sight.suspect_url for sight in sights if sight.suspect_url]
    answers: dict[str, bool] = {}
    if suspects:
        with outward.client(TRY_TIMEOUT) as client, ThreadPoolExecutor(AT_ONCE) as pool:
            answers = dict(
                zip(suspects, pool.map(lambda url: _answers(client, url), suspects), strict=True)
            )
    return [
        _dead(sight.engine) if answers.get(sight.suspect_url) is False else sight.engine
        for sight in sights
    ]


def _answers(client: httpx.Client, url: str) -> bool:
    try:
        return not client.get(f"{url}/health").is_error
    except httpx.HTTPError:
        return False


def _dead(engine: SeenEngine) -> SeenEngine:
    """Its process may come back with its node, as the same instance."""
    lost = next((row.message for row in engine.conditions if row.reason == NODE_LOST), "")
    started = SeenCondition(type="Started", status="False", reason=NODE_LOST, message=lost)
    others = tuple(row for row in engine.conditions if row.type != "Started")
    return dataclasses.replace(
        engine, state="starting", instance=None, failure=lost, conditions=(*others, started)
    )
