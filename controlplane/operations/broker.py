"""What the broker says of itself."""

from typing import Any

from celery import current_app
from kombu import Queue
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

QUEUE = "celery"


def queue_depth() -> int | None:
    """Messages that wait for a worker; None if the broker does not answer."""
    try:
        with current_app.connection_for_read(connect_timeout=2) as connection:
            declared: Any = Queue(QUEUE, channel=connection.default_channel).queue_declare()
            return int(declared.message_count)
    except (OperationalError, RedisError, OSError):
        return None
