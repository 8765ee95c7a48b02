"""The map of prefixes: drawn cells equal the table beside it."""

from datetime import UTC, datetime

from controlplane.console import prefixmap
from controlplane.decisions.selectors import PrefixGroup, PrefixMap

AT = datetime(2026, 11, 30, tzinfo=UTC)


def test_each_held_share_is_drawn_and_listed() -> None:
    group = PrefixGroup("a41f00", "hanbit<bank>", AT, 7000, 3, "e2", {"e1": 0.5, "e2": 1.0})
    found = PrefixMap(groups=[group], endpoints=["e1", "e2", "e3"], group_count=9)

    drawn, rows = prefixmap.drawing(found), prefixmap.rows(found)

    assert drawn.count('class="track"') == 3
    assert drawn.count("currentColor") == 2
    assert drawn.count("<circle") == 1
    assert "hanbit&lt;bank&gt; a41f" in drawn
    assert [(endpoint, share, latest) for _k, _t, endpoint, share, latest in rows] == [
        ("e1", "50", ""),
        ("e2", "100", "●"),
    ]


def test_nothing_held_draws_nothing() -> None:
    assert prefixmap.drawing(PrefixMap(groups=(), endpoints=(), group_count=0)) == ""
