"""What beat sends and why so often. Every task here may run twice, late or not at all."""

from typing import Any

SCHEDULE: dict[str, dict[str, Any]] = {}
