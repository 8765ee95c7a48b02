"""Lists, selectors, pages and watches."""

from collections.abc import Callable
from typing import Any

from kubernetes import watch

from tests.kubernetes.conformance.base import Lab, refused

WATCH_SECONDS = 8


def label_selector(lab: Lab) -> None:
    for number in range(7):
        lab.config_map(f"page-{number}", metadata={"labels": {"page": "y", "n": str(number)}})
    chosen = "page=y,n notin (0,1)"
    found = lab.core.list_namespaced_config_map(lab.namespace, label_selector=chosen)
    assert len(found.items) == 5


def field_selector(lab: Lab) -> None:
    chosen = "metadata.name=page-3"
    found = lab.core.list_namespaced_config_map(lab.namespace, field_selector=chosen)
    assert [item.metadata.name for item in found.items] == ["page-3"]


def pagination(lab: Lab) -> None:
    names: list[str] = []
    pages, token = 0, None
    while pages < 10:
        options = {"_continue": token} if token else {}
        page = lab.core.list_namespaced_config_map(
            lab.namespace, label_selector="page=y", limit=3, **options
        )
        names += [item.metadata.name for item in page.items]
        pages, token = pages + 1, page.metadata._continue
        if not token:
            break
    assert pages == 3
    assert len(set(names)) == len(names) == 7


def list_has_resource_version(lab: Lab) -> None:
    found = lab.core.list_namespaced_config_map(lab.namespace)
    assert found.metadata.resource_version not in (None, "", "0")


def list_from_the_future_is_504(lab: Lab) -> None:
    said = refused(
        504,
        lab.core.list_namespaced_config_map,
        lab.namespace,
        resource_version="999999999",
        resource_version_match="NotOlderThan",
    )
    assert said["reason"] == "Timeout", said


def watch_events(lab: Lab) -> None:
    def act() -> None:
        lab.config_map("w1", metadata={"labels": {"w": "y"}})
        lab.core.patch_namespaced_config_map("w1", lab.namespace, {"data": {"k": "v"}})
        lab.core.delete_namespaced_config_map("w1", lab.namespace)

    assert _seen(lab, act, most=3) == ["ADDED", "MODIFIED", "DELETED"]


def watch_from_resource_version_replays(lab: Lab) -> None:
    def act() -> None:
        lab.config_map("w2", metadata={"labels": {"w": "y"}})
        lab.core.delete_namespaced_config_map("w2", lab.namespace)

    assert _seen(lab, act, most=2) == ["ADDED", "DELETED"]


def watch_leaving_selector_is_deleted(lab: Lab) -> None:
    lab.config_map("w3", metadata={"labels": {"w": "y"}})

    def act() -> None:
        labels = {"metadata": {"labels": {"w": "n"}}}
        lab.core.patch_namespaced_config_map("w3", lab.namespace, labels)

    assert _seen(lab, act, most=1) == ["DELETED"]


def watch_streaming_list(lab: Lab) -> None:
    kind = lab.dynamic.resources.get(api_version="v1", kind="ConfigMap")
    types = []
    for event in lab.dynamic.watch(
        kind,
        namespace=lab.namespace,
        label_selector="page=y",
        timeout=WATCH_SECONDS,
        allow_watch_bookmarks=True,
        send_initial_events=True,
        resource_version_match="NotOlderThan",
    ):
        types.append(event["type"])
        if event["type"] == "BOOKMARK" or len(types) > 20:
            break
    assert types == ["ADDED"] * 7 + ["BOOKMARK"], types


def _seen(lab: Lab, act: Callable[[], None], most: int) -> list[str]:
    """Types of the events that a watch from before the act brings."""
    found = lab.core.list_namespaced_config_map
    before = found(lab.namespace).metadata.resource_version
    act()
    stream, types = watch.Watch(), []
    options: dict[str, Any] = {"label_selector": "w=y", "timeout_seconds": WATCH_SECONDS}
    for event in stream.stream(found, lab.namespace, resource_version=before, **options):
        types.append(event["type"])
        if len(types) == most:
            stream.stop()
    return types


CHECKS = (
    label_selector,
    field_selector,
    pagination,
    list_has_resource_version,
    list_from_the_future_is_504,
    watch_events,
    watch_from_resource_version_replays,
    watch_leaving_selector_is_deleted,
    watch_streaming_list,
)
