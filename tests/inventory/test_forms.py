"""Forms of the fleet's pages."""

from django.core.files.uploadedfile import SimpleUploadedFile

from inventory.discovery.file_import import MOST_BYTES
from inventory.forms import ImportForm, ReasonForm


def test_a_reason_is_needed_and_bounded() -> None:
    assert not ReasonForm({"reason": " "}).is_valid()
    assert not ReasonForm({"reason": "x" * 201}).is_valid()
    assert ReasonForm({"reason": "fan noise"}).is_valid()


def test_a_file_over_the_limit_is_refused_with_both_numbers() -> None:
    file = SimpleUploadedFile("nodes.csv", b"x")
    file.size = MOST_BYTES + 1

    form = ImportForm({}, {"file": file})

    assert form.errors["file"] == [
        f"The file has {MOST_BYTES + 1} bytes; at most {MOST_BYTES} are read."
    ]
