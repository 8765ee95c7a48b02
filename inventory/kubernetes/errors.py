"""What goes wrong between us and a cluster.

ClusterError
├── CredentialsError            the reference leads to nothing that may be used
├── ClusterUnavailableError     nobody answered, or asked us to come back later
├── AnswerError                 an answer came and is not what an API server says
└── ClusterRefusedError         the API server said no, with its reason
    ├── NotFoundError
    │   └── KindMissingError    the cluster does not know the kind
    ├── FieldConflictError      somebody else manages the fields
    ├── StaleError              the object is another one, or has changed since
    └── ExpiredError            a list or watch cannot go on: list again
"""

from collections.abc import Sequence
from dataclasses import dataclass

from inventory.kubernetes.sentences import SENTENCES

_WHOLE = frozenset({429, 502, 503, 504})
MOST_MESSAGE = 500
"""Characters of a sentence of an API server that are kept."""


class ClusterError(Exception):
    """Something about a cluster; the text is a sentence for operators."""

    code = "cluster-error"


class CredentialsError(ClusterError):
    """A reference that cannot be used; `code` names the rule, `facts` fill its sentence."""

    def __init__(self, code: str, **facts: object) -> None:
        super().__init__(SENTENCES[code].format(**facts))
        self.code = code
        self.facts = facts


class ClusterUnavailableError(ClusterError):
    """No answer: not reached, timed out, 429 or 5xx, or not asked because of failures before.

    The call may have had its effect. It is safe to ask again later.
    """

    code = "cluster-unavailable"

    def __init__(
        self, message: str, *, retry_after: float | None = None, status: int | None = None
    ) -> None:
        super().__init__(message[:MOST_MESSAGE])
        self.retry_after = retry_after
        """Seconds after which to ask again, where somebody said so."""
        self.status = status
        """HTTP status; None when there was no answer at all."""

    @property
    def is_of_the_whole_server(self) -> bool:
        """False for a fault of one call, such as a webhook that fails (500)."""
        return self.status is None or self.status in _WHOLE


class AnswerError(ClusterError):
    """An answer of the wrong shape, without what it must have, or larger than allowed."""

    code = "cluster-answer"


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry of `details.causes` of a Status object."""

    reason: str
    message: str
    field: str


class ClusterRefusedError(ClusterError):
    """The API server refused; asking the same again gives the same."""

    code = "cluster-refused"

    def __init__(
        self, *, status: int, reason: str, message: str, causes: Sequence[Cause] = ()
    ) -> None:
        super().__init__(message[:MOST_MESSAGE])
        self.status = status
        self.reason = reason
        """CamelCase word of the API: Forbidden, Invalid, AlreadyExists; empty when not said."""
        self.message = message[:MOST_MESSAGE]
        """The API server's own sentence."""
        self.causes = tuple(causes)


class NotFoundError(ClusterRefusedError):
    """There is no such object, or no such namespace."""

    code = "cluster-not-found"


class KindMissingError(NotFoundError):
    """The cluster does not serve the kind: its definition is not installed."""

    code = "cluster-kind-missing"

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(
            status=404,
            reason="NotFound",
            message=f"The cluster does not serve {kind} of {api_version}.",
        )
        self.api_version = api_version
        self.kind = kind


class FieldConflictError(ClusterRefusedError):
    """An apply would take fields that another field manager holds; nothing was changed."""

    code = "cluster-field-conflict"

    def __init__(self, *, message: str, causes: Sequence[Cause], managers: Sequence[str]) -> None:
        super().__init__(status=409, reason="Conflict", message=message, causes=causes)
        self.manager = ", ".join(managers)
        """Who holds the fields; several names are divided by commas."""
        self.fields = [cause.field for cause in causes]
        """Paths as the API server writes them, like `.spec.replicas`."""


class StaleError(ClusterRefusedError):
    """The object changed since it was read, or its uid is another: read again, then decide."""

    code = "cluster-stale"


class ExpiredError(ClusterRefusedError):
    """The place in a list or watch is gone (410, 504): list again and go on from there."""

    code = "cluster-expired"
