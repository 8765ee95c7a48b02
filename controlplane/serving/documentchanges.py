"""What differs between two versions of a pool document, and how carefully routers get it. Pure."""

import hashlib
from enum import Enum
from typing import Any

import msgspec

from routing.core.document import PoolDocument, encode_document

_OF_A_VERSION = {"version": 1, "author": "-", "created_at": ""}
_ROUTINE = ("endpoints", "speed_classes", "keys", "tenants")
"""Fields that follow engines and keys, and change many times a day."""


class Change(Enum):
    """Kinds of changes, by what they may break."""

    RIGHTS_TAKEN = "rights taken"
    """Keys or tenants are fewer and nothing else differs: no router may go on with the old one."""
    ROUTINE = "routine"
    """Engines or keys differ: one router shows that the document is accepted."""
    SETTINGS = "settings"
    """Policy, limits, targets or models differ: one router shows how traffic fares with them."""


def change_between(old: PoolDocument | None, new: PoolDocument) -> Change:
    """Kind of the change; the first document of a pool is routine, since nobody has another."""
    if old is None:
        return Change.ROUTINE
    if settings_sha256(old) != settings_sha256(new):
        return Change.SETTINGS
    return Change.RIGHTS_TAKEN if _only_takes_rights(old, new) else Change.ROUTINE


def settings_sha256(document: PoolDocument) -> str:
    """SHA-256 of all that people decide about a pool: equal for equal settings."""
    empty: dict[str, Any] = {"endpoints": (), "speed_classes": {}, "keys": (), "tenants": ()}
    bare = msgspec.structs.replace(document, **_OF_A_VERSION, **empty)
    return hashlib.sha256(encode_document(bare)).hexdigest()


def with_settings_of(document: PoolDocument, other: PoolDocument) -> PoolDocument:
    """The document with its own version, engines and keys, under the other's settings."""
    own = {name: getattr(document, name) for name in (*_OF_A_VERSION, *_ROUTINE)}
    return msgspec.structs.replace(other, **own)


def _only_takes_rights(old: PoolDocument, new: PoolDocument) -> bool:
    if (old.endpoints, old.speed_classes) != (new.endpoints, new.speed_classes):
        return False
    had = {row.id: row for row in old.keys}
    stays = all(had.get(row.id) == row for row in new.keys)
    tenants = {row.tenant: row for row in old.tenants}
    stay = all(tenants.get(row.tenant) == row for row in new.tenants)
    is_less = len(new.keys) < len(old.keys) or len(new.tenants) < len(old.tenants)
    return stays and stay and is_less
