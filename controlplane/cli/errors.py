"""How a command ends when it does not end well; the codes are documented and stable."""

USAGE = 2
NOT_FOUND = 3
INVALID = 4
CONFLICT = 5
DENIED = 6
LIMITED = 7
SERVER = 8
INTERRUPTED = 130

_BY_STATUS = {
    400: INVALID, 413: INVALID, 422: INVALID, 404: NOT_FOUND, 409: CONFLICT, 410: CONFLICT,
    412: CONFLICT, 428: CONFLICT, 401: DENIED, 403: DENIED, 429: LIMITED,
}  # fmt: skip


class CliError(Exception):
    """A sentence for the person, and the exit code."""

    def __init__(self, message: str, *, code: int, hint: str = "", request_id: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint
        self.request_id = request_id


def code_of(status: int) -> int:
    """Exit code of an HTTP status that is no success."""
    return _BY_STATUS.get(status, SERVER if status >= 500 else INVALID)
