"""The controller of Jobs: one Pod at a time, until one succeeds or enough have failed."""

import uuid

from tests.kubernetes.fake.admission import POD
from tests.kubernetes.fake.api import Api
from tests.kubernetes.fake.errors import ApiError
from tests.kubernetes.fake.events import tell
from tests.kubernetes.fake.kinds import kind_of
from tests.kubernetes.fake.nodes import condition
from tests.kubernetes.fake.owners import owned_of
from tests.kubernetes.fake.store import Object
from tests.kubernetes.fake.workloads import counts, make_pod

JOB = kind_of("batch/v1", "Job")
LABELS = ("job-name", "batch.kubernetes.io/job-name")


def run_jobs(api: Api) -> None:
    """Start Pods for Jobs, and say which have ended and how."""
    pods = owned_of(api.store.all(POD))
    for item in api.store.all(JOB):
        ended = _ended(item)
        if not item["metadata"].get("deletionTimestamp") and not ended:
            _run(api, item, pods.get(item["metadata"]["uid"], []))


def _ended(item: Object) -> bool:
    found = (item.get("status") or {}).get("conditions") or []
    return any(entry["type"] in {"Complete", "Failed"} for entry in found)


def _run(api: Api, item: Object, pods: list[Object]) -> None:
    phases = [pod["status"].get("phase") for pod in pods]
    failed, now = phases.count("Failed"), api.clock.stamp()
    status = item.get("status") or {}
    started = {"startTime": status.get("startTime") or now}
    if "Succeeded" in phases:
        done = condition("Complete", "True", "CompletionsReached", at=now)
        ended: Object = {"succeeded": 1, "completionTime": now, "conditions": [done]}
        api.set_status(JOB, item, started | counts(failed=failed) | ended)
    elif failed > item["spec"]["backoffLimit"]:
        said = "Job has reached the specified backoff limit"
        over = condition("Failed", "True", "BackoffLimitExceeded", said, now)
        api.set_status(JOB, item, started | {"failed": failed, "conditions": [over]})
    else:
        active = len(pods) - failed or _start(api, item)
        api.set_status(JOB, item, started | counts(active=active, failed=failed))


def _start(api: Api, item: Object) -> int:
    meta = item["metadata"]
    name = f"{meta['name']}-{uuid.uuid4().hex[:5]}"
    labels = dict.fromkeys(LABELS, meta["name"])
    try:
        make_pod(api, item, item["spec"]["template"], name, **labels)
    except ApiError as error:
        tell(api, item, "FailedCreate", f"Error creating: {error.message}", "job-controller")
        return 0
    return 1
