"""Notes as lines."""

from routing.llmd.notes import Note


def test_a_note_says_what_happened_where_and_why() -> None:
    note = Note(kind="kept", pointer="/plugins/0", subject="file-discovery", message="no need")

    assert str(note) == "kept /plugins/0 file-discovery: no need"
    assert str(Note(kind="default", pointer="", subject="picker")) == "default / picker"
