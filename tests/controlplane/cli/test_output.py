"""Tables line up, also in Korean; programs get JSON."""

import pytest

from controlplane.cli import output


def test_columns_line_up_and_numbers_stand_to_the_right() -> None:
    told = output.table(("name", "seconds"), [("a", 1.5), ("bbb", None), ("cc", 12.25)])

    assert told.splitlines() == [
        "name  seconds",
        "a       1.500",
        "bbb         -",
        "cc     12.250",
    ]


def test_a_korean_syllable_takes_two_columns() -> None:
    lines = output.table(("이름", "x"), [("디코드", "y"), ("ab", "z")]).splitlines()

    assert {output.width(line) for line in lines} == {9}


def test_an_empty_table_has_its_head() -> None:
    assert output.table(("a", "b"), []) == "a  b"


@pytest.mark.parametrize(
    ("asked", "is_terminal", "form"),
    [(None, True, "table"), (None, False, "json"), ("yaml", True, "yaml")],
)
def test_a_person_gets_a_table_and_a_program_json(
    asked: str | None, is_terminal: bool, form: str
) -> None:
    assert output.chosen(asked, is_terminal=is_terminal) == form


def test_a_report_is_a_text_file_that_people_can_read() -> None:
    assert output.report({"role": "디코드"}) == '{\n  "role": "디코드"\n}\n'.encode()


def test_json_and_yaml_keep_every_letter() -> None:
    assert "디코드" in output.dumped({"role": "디코드"}, "json")
    assert output.dumped({"b": 1, "a": "디코드"}, "yaml") == "b: 1\na: 디코드"
