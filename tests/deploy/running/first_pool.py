"""What people do after an installation: a pool, an engine that runs already, a role for it, a key.

    DATABASE_URL=… BROKER_URL=… python -m tests.deploy.running.first_pool http://host:port

Prints the key. The installation's own workers do the rest.
"""

import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.config.settings")
django.setup()

from controlplane.serving import services  # noqa: E402 - settings come first
from tests.controlplane.serving import factories  # noqa: E402
from tests.factories import make_admin, make_inference_key  # noqa: E402


def main(url: str) -> str:
    """Secret of the key."""
    pool = factories.make_pool()
    node = factories.make_fleet_node(accelerators=1, kind="static")
    (accelerator,) = factories.accelerators_of(node)
    services.register_static_engine(
        pool_id=pool.pk, accelerator_id=accelerator.pk, url=url, actor=make_admin()
    )
    factories.make_applying(pool, node)
    _key, secret = make_inference_key()
    return secret


if __name__ == "__main__":
    sys.stdout.write(main(sys.argv[1]) + "\n")
