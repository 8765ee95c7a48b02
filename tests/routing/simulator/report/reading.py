"""Reads markup strictly: everything that opens must close."""

from html.parser import HTMLParser

VOID = ("meta",)


class Reader(HTMLParser):
    """Feed it; `seen` has the tags with their attributes in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def read(markup: str) -> Reader:
    """The whole of it."""
    reader = Reader()
    reader.feed(markup)
    reader.close()
    assert reader.open == []
    return reader
