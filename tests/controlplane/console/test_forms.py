"""Forms of the console's own pages; the sign-in form is tested through its page."""

import pytest

from controlplane.console.forms import AccountForm
from controlplane.tenancy.models import User


def test_the_account_form_starts_with_what_the_person_chose() -> None:
    form = AccountForm(None, user=User(language="ko", theme="dark", time_zone="Asia/Seoul"))

    assert form.initial == {"language": "ko", "theme": "dark", "time_zone": "Asia/Seoul"}
    assert 'value="Asia/Seoul" selected' in str(form["time_zone"])


@pytest.mark.parametrize("field", ["language", "theme", "time_zone"])
def test_each_field_is_checked(field: str) -> None:
    values = {"language": "en", "theme": "light", "time_zone": "UTC"} | {field: "nonsense"}

    form = AccountForm(values, user=User())  # type: ignore[arg-type]  # a mapping is enough

    assert list(form.errors) == [field]
