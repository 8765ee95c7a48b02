"""Every part of a text has its line."""

from routing.simulator.yaml_lines import line_of, lines_of

TEXT = b"""# a comment
name: x
fleet:
  - accelerator: a
    count: 2
  - {accelerator: b,
     count: 3}
"""


def test_parts_have_the_line_of_their_name() -> None:
    lines = lines_of(TEXT)

    assert lines["/name"] == 2
    assert lines["/fleet"] == 3
    assert lines["/fleet/0/count"] == 5
    assert lines["/fleet/1"] == 6
    assert lines["/fleet/1/count"] == 7


def test_what_is_missing_has_the_line_of_what_is_around_it() -> None:
    lines = lines_of(TEXT)

    assert line_of("/fleet/0/role", lines) == 4
    assert line_of("/workload/stages", lines) == 2
    assert line_of("/x", {}) is None


def test_an_empty_text_has_no_lines() -> None:
    assert lines_of(b"") == {}
