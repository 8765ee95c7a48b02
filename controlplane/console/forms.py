"""Forms of the console's own pages."""

import zoneinfo
from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from controlplane.common.errors import DomainError
from controlplane.tenancy import services as tenancy
from controlplane.tenancy.models import Theme, User


class SignInForm(AuthenticationForm):
    """User name and password; after too many wrong ones the address waits."""

    error_messages = {
        "invalid_login": _("That user name and password do not match."),
        "inactive": _("This account is switched off."),
    }

    def clean(self) -> dict[str, Any]:
        address = self.request.META.get("REMOTE_ADDR", "") if self.request is not None else ""
        try:
            tenancy.check_login(address=address)
        except DomainError as error:
            hint = str(error.hint).format(**error.facts)
            raise forms.ValidationError([str(error), hint]) from error
        try:
            return super().clean()
        except forms.ValidationError:
            username = str(self.cleaned_data.get("username") or "")
            tenancy.note_failed_login(username=username, address=address)
            raise


class AccountForm(forms.Form):
    """What a person may choose for themselves."""

    language = forms.ChoiceField(
        label=_("Language"),
        choices=[("en", "English"), ("ko", "한국어")],
        widget=forms.Select(attrs={"class": "input"}),
    )
    theme = forms.ChoiceField(
        label=_("Theme"), choices=Theme.choices, widget=forms.Select(attrs={"class": "input"})
    )
    time_zone = forms.ChoiceField(
        label=_("Time zone"),
        choices=lambda: [(name, name) for name in sorted(zoneinfo.available_timezones())],
        widget=forms.Select(attrs={"class": "input"}),
    )

    def __init__(self, posted: QueryDict | None, *, user: User) -> None:
        chosen = {"language": user.language, "theme": user.theme, "time_zone": user.time_zone}
        super().__init__(posted, initial=chosen)
