"""What the broker says of itself."""

from celery import current_app
from kombu.exceptions import OperationalError

QUEUE = "celery"


def queue_depth() -> int | None:
    """Messages that wait for a worker; None if the broker does not answer."""
    try:
        with current_app.connection_for_read(connect_timeout=2) as connection:
            declared = connection.default_channel.queue_declare(queue=QUEUE, passive=False)
            return int(declared.message_count)
    except (OperationalError, OSError, *current_app.connection_for_read().channel_errors):
        return None
