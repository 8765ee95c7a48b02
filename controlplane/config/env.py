"""Reads environment variables once, typed and strict: a wrong value stops the start by name."""

import secrets
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

_TRUE = {"true", "1", "yes"}
_FALSE = {"false", "0", "no"}
_POSTGRES_SCHEMES = {"postgres", "postgresql"}
_BROKER_SCHEMES = {"redis", "rediss", "redis+socket", "amqp", "amqps"}


class Env:
    """The environment, or any mapping in its place."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def text(self, name: str, *, default: str) -> str:
        """Value as it is; an empty one counts as absent."""
        return self._values.get(name) or default

    def flag(self, name: str, *, default: bool) -> bool:
        """`true` or `false` (also 1, 0, yes, no)."""
        value = self.text(name, default=str(default)).lower()
        if value not in _TRUE | _FALSE:
            raise ImproperlyConfigured(f"{name}={value!r}: use 'true' or 'false'.")
        return value in _TRUE

    def number(self, name: str, *, default: int, low: int, high: int) -> int:
        """Whole number from `low` to `high`."""
        value = self.text(name, default=str(default))
        if not value.isdecimal() or not low <= int(value) <= high:
            raise ImproperlyConfigured(f"{name}={value!r}: use a number from {low} to {high}.")
        return int(value)

    def items(self, name: str, *, default: tuple[str, ...]) -> list[str]:
        """Comma-separated list without blanks."""
        value = self._values.get(name)
        if value is None:
            return list(default)
        return [item.strip() for item in value.split(",") if item.strip()]

    def address(self, name: str, *, default: str) -> str:
        """Value of NAME, or content of the file named by NAME_FILE: addresses hold passwords."""
        file = self._values.get(f"{name}_FILE")
        if not file:
            return self.text(name, default=default)
        try:
            return Path(file).read_text().strip() or default
        except OSError as error:
            raise ImproperlyConfigured(
                f"{name}_FILE={file!r} cannot be read: {error.strerror}. The file must be there, "
                "and readable by the user of this process."
            ) from error

    def secret(self, name: str) -> str:
        """Value of NAME, or content of the file named by NAME_FILE; one of them must be there."""
        value = self.address(name, default="")
        if len(value) < 32:
            raise ImproperlyConfigured(
                f"{name} is missing or shorter than 32 characters. Set {name}, or {name}_FILE to a "
                "file that holds it; 'openssl rand -hex 32' makes one."
            )
        return value

    def kept_secret(self, name: str, file: Path) -> str:
        """As `secret`; without one, make it once and keep it in `file` (mode 0600)."""
        if self._values.get(name) or self._values.get(f"{name}_FILE"):
            return self.secret(name)
        if not file.exists():
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            part = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
            part.touch(mode=0o600)
            part.write_text(secrets.token_hex(32))
            try:
                # A link fails when the file exists: of two processes at once one wins.
                file.hardlink_to(part)
            except FileExistsError:
                pass
            finally:
                part.unlink()
        return file.read_text().strip()

    def database(self, name: str, *, default: str) -> dict[str, object]:
        """Django's settings for a PostgreSQL URL."""
        url = self.address(name, default=default)
        parts = urlsplit(url)
        if parts.scheme not in _POSTGRES_SCHEMES:
            raise ImproperlyConfigured(
                f"{name} starts with {parts.scheme!r}: Consort runs on PostgreSQL only, as "
                "postgresql://user:password@host:5432/name."
            )
        query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": unquote(parts.path.lstrip("/")) or "consort",
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""),
            "HOST": parts.hostname or query.pop("host", ""),
            "PORT": str(parts.port or ""),
            "OPTIONS": query,
        }

    def broker(self, name: str, *, default: str) -> str:
        """URL of a broker that keeps messages: Redis, Valkey or RabbitMQ."""
        url = self.address(name, default=default)
        scheme = urlsplit(url).scheme
        if scheme not in _BROKER_SCHEMES:
            raise ImproperlyConfigured(
                f"{name} starts with {scheme!r}; allowed: {', '.join(sorted(_BROKER_SCHEMES))}."
            )
        return url
