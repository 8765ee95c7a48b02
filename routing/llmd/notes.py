"""What happened to a part of a configuration on its way to us, said with its place."""

from typing import Literal

import msgspec

NoteKind = Literal["kept", "adapted", "renamed", "default"]


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """One remark.

    `kept` has no counterpart: it is written back unchanged and does nothing here. `adapted` works
    in another way or within other bounds, `renamed` is a deprecated spelling, `default` was left
    out and filled as upstream fills it.
    """

    kind: NoteKind
    pointer: str
    """Where it stands in the text that was read."""
    subject: str
    """A plugin's type or a field."""
    message: str = ""

    def __str__(self) -> str:
        ending = f": {self.message}" if self.message else ""
        return f"{self.kind} {self.pointer or '/'} {self.subject}{ending}"
