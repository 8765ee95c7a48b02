"""Calls of the API: time-outs, retries of what may be repeated, problems as sentences."""

import ssl
import time
from collections.abc import Callable
from typing import Any

import httpx

from controlplane.cli.errors import SERVER, CliError, code_of
from controlplane.cli.settings import Settings

TIMEOUT = httpx.Timeout(90.0, connect=5.0)
TRIES = 4
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 20.0
RETRIED = (429, 503)


class Client:
    """One server, one person."""

    def __init__(self, settings: Settings, *, pause: Callable[[float], None] = time.sleep) -> None:
        self._settings = settings
        self._pause = pause

    def get(self, path: str, **parameters: Any) -> Any:
        """The body of a read; parameters that are None are left out."""
        given = {name: value for name, value in parameters.items() if value is not None}
        return self._call("GET", path, params=given)

    def text(self, path: str, **parameters: Any) -> str:
        """The body of a read that is no JSON; parameters that are None are left out."""
        given = {name: value for name, value in parameters.items() if value is not None}
        text: str = self._call("GET", path, read=_text, params=given)
        return text

    def post(self, path: str, body: dict[str, Any], *, key: str | None = None) -> Any:
        """The body of the answer; `key` makes a repeated call the same call."""
        headers = {} if key is None else {"Idempotency-Key": key}
        given = {name: value for name, value in body.items() if value is not None}
        return self._call("POST", path, json=given, headers=headers)

    def _call(
        self,
        method: str,
        path: str,
        *,
        read: Callable[[httpx.Response], Any] | None = None,
        **arguments: Any,
    ) -> Any:
        settings = self._settings
        verify = ssl.create_default_context(cafile=settings.ca_file)
        headers = {"Authorization": f"Bearer {settings.token}", **arguments.pop("headers", {})}
        with httpx.Client(timeout=TIMEOUT, verify=verify, trust_env=False) as client:
            for attempt in range(1, TRIES + 1):
                try:
                    answer = client.request(
                        method, f"{settings.url}/api/v1/{path}", headers=headers, **arguments
                    )
                except httpx.HTTPError as error:
                    if attempt == TRIES:
                        raise CliError(
                            f"{settings.url} did not answer: {error}.", code=SERVER
                        ) from error
                    self._pause(FIRST_PAUSE * 2 ** (attempt - 1))
                    continue
                if answer.status_code not in RETRIED or attempt == TRIES:
                    return (read or _body)(answer)
                self._pause(_wait(answer, attempt))
        raise CliError(f"{settings.url} did not answer.", code=SERVER)


def _wait(answer: httpx.Response, attempt: int) -> float:
    told = answer.headers.get("Retry-After", "")
    seconds = float(told) if told.isdigit() else FIRST_PAUSE * 2 ** (attempt - 1)
    return min(seconds, LONGEST_PAUSE)


def _text(answer: httpx.Response) -> str:
    if not answer.is_success:
        raise _refusal(answer)
    return answer.text


def _body(answer: httpx.Response) -> Any:
    if not answer.is_success:
        raise _refusal(answer)
    try:
        return answer.json()
    except ValueError as error:
        raise CliError("The server's answer is not JSON.", code=SERVER) from error


def _refusal(answer: httpx.Response) -> CliError:
    try:
        problem = answer.json()
    except ValueError:
        problem = {}
    return CliError(
        _sentence(problem) or f"The server answered {answer.status_code}.",
        code=code_of(answer.status_code),
        hint=str(problem.get("hint") or ""),
        request_id=answer.headers.get("X-Request-Id", "") or str(problem.get("request_id") or ""),
    )


def _sentence(problem: dict[str, Any]) -> str:
    told = [str(problem.get("detail") or problem.get("title") or "")]
    told += [
        f"{error.get('pointer')}: {error.get('detail')}" for error in problem.get("errors") or ()
    ]
    return "\n".join(line for line in told if line)
