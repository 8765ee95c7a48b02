"""What every process of a router does to itself at its start."""

import asyncio
import gc
import resource
import signal


def raise_file_limit() -> None:
    """A stream needs two sockets; the usual soft limit of 1,024 files would end at 500 streams."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def calm_collector() -> None:
    """Modules and documents never become garbage: leave them out, and look for it less often.

    A full collection walks every object and stops all streams meanwhile.
    """
    gc.collect()
    gc.freeze()
    # Requests leave no rings behind, see `test_rings`; documents that were replaced leave a few.
    # Once in 40,000 is often enough for them, and what is walked then, without the frozen part,
    # takes some milliseconds.
    gc.set_threshold(5_000, 4, 2)


def stop_signal() -> asyncio.Event:
    """Set by SIGTERM and SIGINT; call it inside the loop."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    return stop
