"""`make demo`: a whole installation on this machine, until Ctrl-C or for DEMO_SECONDS."""

import logging
import os
import signal
import sys
import time
from types import FrameType

from deploy.demo.installation import Installation, InstallationError
from deploy.demo.options import OptionsError, read_options
from deploy.demo.supervision import SupervisionError


def main(arguments: list[str]) -> int:
    """0 when all went well, 1 when a part failed, 2 for options that do not fit."""
    started = time.monotonic()
    try:
        options = read_options(arguments, os.environ)
        installation = Installation(options, say=say)
    except OptionsError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    # A shell that starts it in the background leaves SIGINT ignored.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        return _run(installation, started)
    except OptionsError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except (InstallationError, SupervisionError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        say("Stopping …")
        return 0 if options.seconds is None else 1
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        if installation.stop():
            say("Everything is stopped.")


def _run(installation: Installation, started: float) -> int:
    installation.start()
    import django  # the database must run first

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.config.settings")
    django.setup()
    logging.getLogger("httpx").setLevel(logging.WARNING)
    from deploy.demo import tables  # needs Django

    say("Bringing the tables up to date …")
    tables.migrate()
    from deploy.demo.show import Show  # needs Django

    return Show(installation, say=say, started=started).run()


def say(sentence: str) -> None:
    """One line for the person at the terminal."""
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
