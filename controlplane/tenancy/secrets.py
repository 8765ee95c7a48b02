"""Formats and digests of tokens and keys; plain functions, no rows.

`cst_<environment>_<8 characters>_<43 characters>` is a token of the control plane,
`csk_<environment>_<8 characters>_<43 characters>` a key of the data plane. The part before the last
underscore is the prefix: it is stored, shown and found by secret scanners.
"""

import hashlib
import hmac
import re
import secrets
import string

from django.conf import settings

API_TOKEN = "cst"  # noqa: S105 - the kind of a secret, not one
INFERENCE_KEY = "csk"
_ALPHABET = string.ascii_letters + string.digits
_FORM = re.compile(r"^((cst|csk)_[a-z0-9]{1,8}_[A-Za-z0-9]{8})_[A-Za-z0-9_-]{43}\Z")


def issue(kind: str) -> tuple[str, str]:
    """Prefix and secret; the secret has 256 random bits."""
    short = "".join(secrets.choice(_ALPHABET) for _ in range(8))
    prefix = f"{kind}_{settings.KEY_ENVIRONMENT}_{short}"
    return prefix, f"{prefix}_{secrets.token_urlsafe(32)}"


def prefix_of(secret: str, *, kind: str) -> str | None:
    """Prefix of a well-formed secret of the kind, else None."""
    match = _FORM.match(secret)
    return match[1] if match and match[2] == kind else None


def plain_sha256(secret: str) -> str:
    """Digest of an inference key, as routers compare it."""
    return hashlib.sha256(secret.encode()).hexdigest()


def peppered(secret: str, *, version: int) -> str:
    """Digest of an API token: HMAC-SHA256 with the pepper of the version, in hexadecimal."""
    pepper = settings.TOKEN_PEPPERS[version]
    return hmac.new(pepper.encode(), secret.encode(), hashlib.sha256).hexdigest()


def same(left: str, right: str) -> bool:
    """Compare two digests in a time that does not depend on where they differ."""
    return hmac.compare_digest(left, right)
