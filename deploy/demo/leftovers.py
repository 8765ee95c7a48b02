"""Ends what an earlier demo left running after its own process was killed."""

from deploy.demo import supervision


def end() -> bool:
    """Stop a supervisord without a parent, and with it every process it runs; false if none."""
    return supervision.stop_survivor(supervision.current_socket())
