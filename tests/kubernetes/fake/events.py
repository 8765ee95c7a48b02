"""Events, as controllers, scheduler and kubelets leave them."""

import re
import uuid

from tests.kubernetes.fake.api import Api
from tests.kubernetes.fake.errors import ApiError
from tests.kubernetes.fake.kinds import kind_of
from tests.kubernetes.fake.store import Object

EVENT = kind_of("v1", "Event")
_QUOTED = re.compile(r'"[^"]*"')


def without_names(message: str) -> str:
    """A message without what it quotes: each attempt to create a Pod has a name of its own."""
    return _QUOTED.sub('""', message)


def tell(api: Api, about: Object, reason: str, message: str, component: str) -> None:
    """Leave a Warning about an object; the same words again are not written twice."""
    meta = about["metadata"]
    space = meta.get("namespace", "default")
    for event in api.store.all(EVENT, space):
        same = event["involvedObject"].get("uid") == meta["uid"] and event["reason"] == reason
        if same and without_names(event["message"]) == without_names(message):
            return
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{meta['name']}.{uuid.uuid4().hex[:16]}", "namespace": space},
        "involvedObject": {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "name": meta["name"],
            "namespace": space,
            "uid": meta["uid"],
        },
        "reason": reason,
        "message": message,
        "type": "Warning",
        "count": 1,
        "firstTimestamp": api.clock.stamp(),
        "lastTimestamp": api.clock.stamp(),
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": component,
    }
    try:
        api.create(EVENT, space, body)
    except ApiError as error:
        if error.status not in (403, 404):  # the namespace ends: nobody will read it
            raise
