"""Block keys of engines whose blocks have another size than the router's.

An engine's block (here: page) may end inside a block of the router. A page therefore remembers the
key before its unfinished block and the tokens since then, one per branch: whatever follows it later
finishes the block with the tokens of its own branch. A block of the router is held while all pages
under it are; where branches part inside a page, the blocks before that have pages of each branch
under them, and are held while those of one branch are.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import xxhash

_FEW_GROUNDS = 8
"""So many of a page are not worth a look for those that ended."""


@dataclass(slots=True, eq=False)
class Ground:
    """Pages of one branch under one block of the router."""

    key: int
    is_whole: bool = True
    """None of them has left."""


@dataclass(slots=True, eq=False)
class Page:
    """One block of the engine."""

    end: int
    """Key of the last whole block of the router up to here, or the chain's root."""
    tail: bytes
    """Token ids after it."""
    under_tail: tuple["Page", ...]
    """Pages with tokens in the tail, this one last."""
    grounds: list[Ground] = field(default_factory=list)
    """Of the blocks of the router that have tokens of this page."""
    most_grounds: int = _FEW_GROUNDS
    """From so many on those that ended are dropped before the next one comes."""
    is_held: bool = True

    def carry(self, ground: Ground) -> None:
        """One more block has tokens of this page.

        Branches come and go while the page that they part in stays, as the end of a prompt that all
        users share does.
        """
        if len(self.grounds) >= self.most_grounds:
            self.grounds = [one for one in self.grounds if one.is_whole]
            self.most_grounds = 2 * len(self.grounds) + _FEW_GROUNDS
        self.grounds.append(ground)


def start(root: int) -> Page:
    """What the first page of a prompt follows."""
    return Page(root, b"", ())


class Pages:
    """One publisher's pages by the engine's hashes; calls back with keys to hold and to drop.

    `hold` answers with the positions of those keys that were held already.
    """

    def __init__(
        self,
        *,
        width: int,
        limit: int,
        hold: Callable[[list[int]], list[int]],
        drop: Callable[[list[int]], None],
    ) -> None:
        """`width`: bytes of a block of the router; `limit`: most pages kept."""
        self._width, self._limit = width, limit
        self._hold, self._drop = hold, drop
        self._pages: dict[int, Page] = {}
        self._more: dict[int, int] = {}
        """How many whole grounds a block has beyond one."""

    def __len__(self) -> int:
        return len(self._pages)

    def get(self, name: int) -> Page | None:
        """A held page."""
        return self._pages.get(name)

    def store(self, name: int, tokens: bytes, after: Page) -> Page:
        """A page came in behind another one; storing it again changes nothing."""
        known = self._pages.get(name)
        if known is not None:
            return known
        page = self._follow(tokens, after)
        self._pages[name] = page
        if len(self._pages) > self._limit:
            self.remove(next(iter(self._pages)))
        return page

    def _follow(self, tokens: bytes, after: Page) -> Page:
        text, key, width = after.tail + tokens, after.end, self._width
        whole = len(text) - len(text) % width
        keys = []
        for at in range(0, whole, width):
            key = xxhash.xxh3_64_intdigest(text[at : at + width], seed=key)
            keys.append(key)
        page = Page(key, text[whole:], ())
        page.under_tail = (page,) if whole else (*after.under_tail, page)
        if not text[whole:]:
            page.under_tail = ()
        self._enter(page, keys, after.under_tail)
        return page

    def _enter(self, page: Page, keys: list[int], before: tuple[Page, ...]) -> None:
        """The first of these blocks may begin in earlier pages, of which some may have left."""
        if not all(earlier.is_held for earlier in before):
            keys, before = keys[1:], ()
        if not keys:
            return
        page.grounds = [Ground(key) for key in keys]
        for earlier in before:
            earlier.carry(page.grounds[0])
        for position in self._hold(keys):
            self._more[keys[position]] = self._more.get(keys[position], 0) + 1

    def remove(self, name: int) -> bool:
        """A page left; false when it was not there."""
        page = self._pages.pop(name, None)
        if page is None:
            return False
        page.is_held = False
        gone = []
        for ground in page.grounds:
            if ground.is_whole:
                ground.is_whole = False
                if not self._one_less(ground.key):
                    gone.append(ground.key)
        self._drop(gone)
        return True

    def _one_less(self, key: int) -> bool:
        """A ground of a block is not whole any more; false when it was the last one."""
        count = self._more.pop(key, 0)
        if count > 1:
            self._more[key] = count - 1
        return count > 0

    def clear(self) -> None:
        """All pages left; their keys are the caller's business."""
        for page in self._pages.values():
            page.is_held = False
        self._pages.clear()
        self._more.clear()
