"""Each lesson is held by a test or has a reason, and the page says so."""

from tests.architecture.lessons import LESSONS, NOT_HELD, PAGE, held, page


def test_every_lesson_is_held_by_a_test_or_has_a_reason() -> None:
    tests = held()

    assert [lesson for lesson in LESSONS if lesson not in tests and lesson not in NOT_HELD] == []


def test_a_lesson_that_is_held_has_no_reason_why_not() -> None:
    assert sorted(set(held()) & set(NOT_HELD)) == []


def test_tests_name_lessons_that_exist() -> None:
    assert sorted(set(held()) - set(LESSONS)) == []


def test_the_page_shows_what_the_tests_hold() -> None:
    assert PAGE.read_text() == page(), "run: python -m tests.architecture.lessons"
