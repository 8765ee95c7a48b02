"""What an API server answered: refusals as errors, objects and lists checked before use. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from inventory.kubernetes.errors import (
    AnswerError,
    Cause,
    ClusterError,
    ClusterRefusedError,
    ClusterUnavailableError,
    ExpiredError,
    FieldConflictError,
    NotFoundError,
    StaleError,
)

MOST_CAUSES = 50
MOST_RETRY_SECONDS = 600.0
_MANAGER = re.compile(r'conflict with "([^"]*)"')
_EVENTS = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")
# Looked up in tuples: what a server sends need not be hashable.
_CONFLICT = "FieldManagerConflict"
_VERSION = re.compile(r"v[0-9]{1,3}\.[0-9]{1,3}[-+.0-9A-Za-z]{0,60}")


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list."""

    items: list[dict[str, Any]]
    resource_version: str
    next: str
    """Token of the page after this one; empty at the end."""


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a watch."""

    type: str
    """ADDED, MODIFIED, DELETED; BOOKMARK carries only a resourceVersion."""
    object: dict[str, Any]

    @property
    def resource_version(self) -> str:
        """Where the watch stands after this event."""
        return str(self.object["metadata"].get("resourceVersion") or "")


def parse(body: bytes) -> Any:
    """JSON, or AnswerError."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise AnswerError(f"The answer is not JSON: {error}.") from None


def mapping(value: Any) -> dict[str, Any]:
    """A JSON object, or AnswerError."""
    if not isinstance(value, dict):
        raise AnswerError(f"The answer is {_shown(value)}; an object is expected.")
    return value


def checked_object(value: Any, *, kind: str, name: str | None = None) -> dict[str, Any]:
    """An object of that kind, and of that name when one is given; its metadata is sound."""
    found = mapping(value)
    if found.get("kind") != kind:
        raise AnswerError(f"The answer is of the kind {_shown(found.get('kind'))}, not {kind}.")
    _check_metadata(found, f"{kind}")
    if name is not None and found["metadata"]["name"] != name:
        raise AnswerError(f"The answer is about {kind} {_shown(found['metadata']['name'])}.")
    return found


def checked_page(value: Any, *, api_version: str, kind: str) -> Page:
    """A page of a list; items get the kind that lists leave out."""
    found = mapping(value)
    meta = found.get("metadata")
    items = found.get("items")
    if not isinstance(meta, dict) or not isinstance(meta.get("resourceVersion"), str):
        raise AnswerError(f"The list of {kind} has no resourceVersion.")
    if items is None:
        items = []
    if not isinstance(items, list):
        raise AnswerError(f"The items of the list of {kind} are {_shown(items)}.")
    for number, item in enumerate(items):
        if not isinstance(item, dict):
            raise AnswerError(f"Item {number} of the list of {kind} is {_shown(item)}.")
        item.setdefault("apiVersion", api_version)
        item.setdefault("kind", kind)
        _check_metadata(item, f"Item {number} of the list of {kind}")
    token = meta.get("continue") or ""
    if not isinstance(token, str):
        raise AnswerError(f"The list of {kind} goes on at {_shown(token)}.")
    return Page(items, meta["resourceVersion"], token)


def checked_event(line: bytes, *, kind: str) -> Event:
    """One line of a watch. Raises ExpiredError where the watch cannot go on."""
    value = mapping(parse(line))
    found = value.get("object")
    if value.get("type") == "ERROR":
        status = found if isinstance(found, dict) else {}
        code = status.get("code")
        raise refusal(code if isinstance(code, int) else 500, {}, status, in_list=True)
    if value.get("type") not in _EVENTS:
        raise AnswerError(f"A watch of {kind} sent the event {_shown(value.get('type'))}.")
    if not isinstance(found, dict):
        raise AnswerError(f"A watch of {kind} sent {_shown(found)} as an object.")
    if value["type"] == "BOOKMARK":
        if not isinstance(found.get("metadata"), dict):
            raise AnswerError(f"A bookmark in a watch of {kind} has no metadata.")
    else:
        _check_metadata(found, f"A watched {kind}")
    return Event(value["type"], found)


def refusal(
    status: int, headers: Mapping[str, str], body: Any, *, in_list: bool = False
) -> ClusterError:
    """The error for an answer of status 300 or more; `body` is parsed JSON or anything else."""
    said = body if isinstance(body, dict) and body.get("kind") in ("Status", None) else {}
    reason, message = _text(said.get("reason")), _text(said.get("message"))
    sentence = message or f"The API server answered {status}."
    if in_list and (status == 410 or (status == 504 and reason == "Timeout")):
        return ExpiredError(status=status, reason=reason, message=sentence)
    if status == 429 or status >= 500:
        return ClusterUnavailableError(
            sentence, retry_after=_retry_after(headers, said), status=status
        )
    if status < 400:
        return AnswerError(f"The API server answered {status}: redirections are not followed.")
    return _refused(status, reason, sentence, _causes(said))


def _refused(
    status: int, reason: str, message: str, causes: tuple[Cause, ...]
) -> ClusterRefusedError:
    if status == 404:
        return NotFoundError(status=status, reason=reason, message=message, causes=causes)
    if status == 410:
        return ExpiredError(status=status, reason=reason, message=message, causes=causes)
    conflicts = [cause for cause in causes if cause.reason == _CONFLICT]
    if status == 409 and conflicts:
        return FieldConflictError(message=message, causes=conflicts, managers=_managers(conflicts))
    if status == 409 and reason != "AlreadyExists":
        return StaleError(status=status, reason=reason, message=message, causes=causes)
    return ClusterRefusedError(status=status, reason=reason, message=message, causes=causes)


def _managers(conflicts: list[Cause]) -> list[str]:
    """Names in the order in which they are said, each once; unknown when none is said."""
    named = [found[1] for cause in conflicts if (found := _MANAGER.search(cause.message))]
    return list(dict.fromkeys(named)) or ["unknown"]


def _causes(said: Mapping[str, Any]) -> tuple[Cause, ...]:
    details = said.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    if not isinstance(causes, list):
        return ()
    return tuple(
        Cause(_text(cause.get("reason")), _text(cause.get("message")), _text(cause.get("field")))
        for cause in causes[:MOST_CAUSES]
        if isinstance(cause, dict)
    )


def _retry_after(headers: Mapping[str, str], said: Mapping[str, Any]) -> float | None:
    """Seconds that the answer asks for, bounded; None when it asks for none."""
    details = said.get("details")
    asked = headers.get("retry-after") or (
        details.get("retryAfterSeconds") if isinstance(details, dict) else None
    )
    try:
        seconds = float(asked) if isinstance(asked, str | int | float) else None
    except ValueError:
        return None
    if seconds is None or not 0 <= seconds < float("inf"):
        return None
    return min(seconds, MOST_RETRY_SECONDS)


def _check_metadata(found: Mapping[str, Any], what: str) -> None:
    meta = found.get("metadata")
    if not isinstance(meta, dict):
        raise AnswerError(f"{what} has no metadata.")
    name = meta.get("name")
    if not isinstance(name, str) or not name:
        raise AnswerError(f"{what} has no name.")
    for key in ("labels", "annotations"):
        pairs = meta.get(key)
        if pairs is not None and not _is_text_map(pairs):
            raise AnswerError(f"{what} '{name[:253]}' has {key} that are not texts.")
    for key in ("namespace", "uid", "resourceVersion"):
        if not isinstance(meta.get(key, ""), str):
            raise AnswerError(f"{what} '{name[:253]}' has a {key} that is no text.")


def _is_text_map(pairs: Any) -> bool:
    return isinstance(pairs, dict) and all(isinstance(value, str) for value in pairs.values())


def _text(value: Any) -> str:
    return value[:2000] if isinstance(value, str) else ""


def _shown(value: Any) -> str:
    """A value as far as a sentence can hold it."""
    if value is None:
        return "missing"
    return repr(value)[:60] if isinstance(value, str | int | float | bool) else type(value).__name__


def checked_review(value: Any) -> bool:
    """Whether an answered access review allows it."""
    status = mapping(value).get("status")
    allowed = status.get("allowed") if isinstance(status, dict) else None
    if not isinstance(allowed, bool):
        raise AnswerError("The answer about a right does not say whether it is allowed.")
    return allowed


def checked_version(value: Any) -> str:
    """The version of an API server, like `v1.36.2`."""
    version = mapping(value).get("gitVersion")
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        raise AnswerError("The answer about the version has no gitVersion like v1.36.2.")
    return version
