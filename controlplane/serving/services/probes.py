"""Is an engine ready? It lists the model, a real completion came back, and it is warm.

The tokens of each probe are kept, so that usage of clients and work of engines can be compared.
"""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import httpx
from django.db import transaction
from django.utils import timezone

from controlplane.serving import outward
from controlplane.serving.conditions import with_condition
from controlplane.serving.models import Endpoint, Pool, ProbeRecord
from controlplane.serving.services.holding import Hold

logger = logging.getLogger(__name__)

State = Endpoint.State
TIMEOUT = httpx.Timeout(8.0, connect=1.0)
AT_ONCE = 8
LOOK_AGAIN_AFTER = timedelta(seconds=15)
READY_PROMPT = "Say ready."
WARM_UP_WORDS = 230
"""About 300 tokens: a fresh decode engine should see an ordinary prompt before it pulls KV."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answered:
    """Tokens of a completion that came back."""

    purpose: str
    prompt_tokens: int
    cached_tokens: int | None
    completion_tokens: int


class ProbeFailedError(Exception):
    """The engine is not ready; the sentence says what is missing."""

    lists_model = False
    """True if only the completion is missing."""


def probe_starting(pool: Pool, hold: Hold) -> int:
    """Take starting endpoints to ready; returns how many became ready. Never waits for one."""
    endpoints = list(
        Endpoint.objects.filter(pool=pool, state__in=[State.STARTING, State.WARMING])
        .select_related("workload", "pool__model")
        .order_by("pk")
    )
    if not endpoints:
        return 0
    hold.renew()
    ready = 0
    for endpoint, outcome in zip(endpoints, _at_once(_probe, endpoints), strict=True):
        if isinstance(outcome, ProbeFailedError):
            _note(endpoint, status="False", reason="NotReady", message=str(outcome))
            if outcome.lists_model:
                Endpoint.objects.filter(pk=endpoint.pk, state=State.STARTING).update(
                    state=State.WARMING, updated_at=timezone.now()
                )
        else:
            _become_ready(endpoint, outcome)
            ready += 1
    return ready


def look_at_ready(pool: Pool, hold: Hold) -> None:
    """Ask ready endpoints that were not looked at for a while whether they still list the model."""
    endpoints = list(
        Endpoint.objects.filter(
            pool=pool,
            state=State.READY,
            observed_at__lt=timezone.now() - LOOK_AGAIN_AFTER,
        )
        .select_related("workload", "pool__model")
        .order_by("pk")
    )
    if not endpoints:
        return
    hold.renew()
    for endpoint, outcome in zip(endpoints, _at_once(_list_model, endpoints), strict=True):
        if isinstance(outcome, ProbeFailedError):
            _note(endpoint, status="False", reason="NotAnswering", message=str(outcome))
        else:
            Endpoint.objects.filter(pk=endpoint.pk).update(observed_at=timezone.now())
            _note(endpoint, status="True", reason="Answered", message="")


def _at_once(
    probe: Callable[[httpx.Client, Endpoint], T], endpoints: Sequence[Endpoint]
) -> list[T | ProbeFailedError]:
    """Probe several endpoints at a time; threads do HTTP only, never a query."""

    def call(endpoint: Endpoint) -> T | ProbeFailedError:
        try:
            return probe(client, endpoint)
        except ProbeFailedError as error:
            return error
        except (httpx.HTTPError, ValueError, KeyError, TypeError, IndexError) as error:
            return ProbeFailedError(f"{endpoint.url}: {type(error).__name__}: {error}")

    with outward.client(TIMEOUT) as client, ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(call, endpoints))


def _probe(client: httpx.Client, endpoint: Endpoint) -> list[Answered]:
    _list_model(client, endpoint)
    try:
        answers = [_complete(client, endpoint, "ready", READY_PROMPT, max_tokens=4)]
        if endpoint.role != "prefill":
            prompt = " ".join(f"warm {number}" for number in range(WARM_UP_WORDS // 2))
            answers.append(_complete(client, endpoint, "warm-up", prompt, max_tokens=8))
    except ProbeFailedError as error:
        error.lists_model = True
        raise
    return answers


def _list_model(client: httpx.Client, endpoint: Endpoint) -> None:
    answer = client.get(f"{endpoint.url}/v1/models")
    if answer.is_error:
        raise ProbeFailedError(f"{endpoint.url}/v1/models answered {answer.status_code}.")
    names = [model["id"] for model in answer.json()["data"]]
    if endpoint.pool.model.slug not in names:
        raise ProbeFailedError(
            f"{endpoint.url} lists {', '.join(names)}, not {endpoint.pool.model.slug}."
        )


def _complete(
    client: httpx.Client, endpoint: Endpoint, purpose: str, prompt: str, *, max_tokens: int
) -> Answered:
    body = {
        "model": endpoint.pool.model.slug,
        "prompt": prompt,
        "max_tokens": max_tokens,
        "temperature": 0,
    }
    answer = client.post(f"{endpoint.url}/v1/completions", json=body)
    if answer.is_error:
        raise ProbeFailedError(f"{endpoint.url} answered a completion with {answer.status_code}.")
    content: dict[str, Any] = answer.json()
    if not content["choices"][0]["text"]:
        raise ProbeFailedError(f"{endpoint.url} answered a completion without any text.")
    usage = content["usage"]
    details = usage.get("prompt_tokens_details") or {}
    return Answered(
        purpose=purpose,
        prompt_tokens=int(usage["prompt_tokens"]),
        cached_tokens=details.get("cached_tokens"),
        completion_tokens=int(usage["completion_tokens"]),
    )


@transaction.atomic
def _become_ready(endpoint: Endpoint, answers: Sequence[Answered]) -> None:
    now = timezone.now()
    ProbeRecord.objects.bulk_create(
        ProbeRecord(
            endpoint=endpoint,
            purpose=answer.purpose,
            prompt_tokens=answer.prompt_tokens,
            cached_tokens=answer.cached_tokens,
            completion_tokens=answer.completion_tokens,
            at=now,
        )
        for answer in answers
    )
    Endpoint.objects.filter(pk=endpoint.pk, state__in=[State.STARTING, State.WARMING]).update(
        state=State.READY, ready_at=now, observed_at=now, updated_at=now
    )
    _note(endpoint, status="True", reason="CompletionCameBack", message="")


def _note(endpoint: Endpoint, *, status: Any, reason: str, message: str) -> None:
    workload = endpoint.workload
    rows = with_condition(
        workload.conditions,
        type="Serving",
        status=status,
        reason=reason,
        message=message,
        at=timezone.now(),
    )
    if rows != workload.conditions:
        workload.conditions = rows
        workload.save(update_fields=["conditions", "updated_at"])
