"""Does an API server, real or fake, behave as Consort relies on?

    python -m tests.kubernetes.conformance --server http://127.0.0.1:8443
    python -m tests.kubernetes.conformance --kubeconfig FILE [--without-custom]

Prints one line per check; the exit code is 1 when one failed.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from kubernetes import client, config

from tests.kubernetes.conformance import basics, custom, lists, writes
from tests.kubernetes.conformance.base import Lab

BUILT_IN = (*basics.CHECKS, *writes.CHECKS, *lists.CHECKS)
CHECKS = (*BUILT_IN, *custom.CHECKS, *writes.LAST)


@dataclass(frozen=True)
class Result:
    """One check: None is success."""

    name: str
    failure: str | None
    seconds: float


def run(api: client.ApiClient, *, with_custom: bool = True) -> Iterator[Result]:
    """All checks, in order, each whatever became of the others."""
    lab = Lab(api)
    for check in CHECKS if with_custom else (*BUILT_IN, *writes.LAST):
        began, failure = time.perf_counter(), None
        try:
            check(lab)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - it failed
            failure = f"{type(error).__name__}: {error}".replace("\n", " ")[:300]
        yield Result(check.__name__, failure, time.perf_counter() - began)


def main() -> int:
    """Check the server that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("--server")
    place.add_argument("--kubeconfig")
    parser.add_argument("--without-custom", action="store_true")
    options = parser.parse_args()
    if options.server:
        api = client.ApiClient(client.Configuration(host=options.server))
    else:
        api = config.new_client_from_config(options.kubeconfig)
    failed = 0
    for result in run(api, with_custom=not options.without_custom):
        failed += result.failure is not None
        word = "FAIL" if result.failure else "PASS"
        line = f"{word} {result.name:38} {result.seconds * 1000:6.0f} ms  {result.failure or ''}\n"
        sys.stdout.write(line)
    sys.stdout.write(f"{failed} failed\n")
    return min(1, failed)


if __name__ == "__main__":
    raise SystemExit(main())
