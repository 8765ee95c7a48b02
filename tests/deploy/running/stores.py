"""PostgreSQL and Valkey for pods: a database of their own, by a socket mounted into them."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from controlplane.config.embedded import postgres, valkey
from controlplane.config.embedded.places import places
from tests.deploy.running.pods import Mount, Site

SOCKETS = "/run/stores"


def sockets() -> Path:
    """Where the embedded PostgreSQL listens; it belongs to the user that may connect.

    Skips the test where DATABASE_URL names another one, which pods could not reach.
    """
    if not postgres.is_running():
        pytest.skip("The embedded PostgreSQL does not run: DATABASE_URL names another one.")
    return places().sockets


def mount() -> Mount:
    """The socket inside a pod."""
    return Mount(sockets(), SOCKETS)


@contextmanager
def database() -> Iterator[str]:
    """A new database; yields its name and drops it at the end."""
    name = f"consort_pods_{secrets.token_hex(4)}"
    with connection("postgres") as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield name
    finally:
        with connection("postgres") as admin:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def connection(name: str) -> psycopg.Connection:
    """To a database of the embedded server, from the test itself."""
    return psycopg.connect(
        dbname=name, user=postgres.USER, host=str(sockets()), autocommit=True, connect_timeout=10
    )


def address_of(name: str) -> str:
    """The database's address inside a pod."""
    return f"postgresql://{postgres.USER}@/{name}?host={SOCKETS}"


@contextmanager
def cache_and_broker(site: Site, *options: str) -> Iterator[None]:
    """A Valkey of the site's own, on port 6379 of its network; clients wait by themselves."""
    process = site.run(valkey._binary(), *options, "--save", "", "--dir", str(site.folder))
    try:
        yield
    finally:
        process.kill()
        process.wait()
