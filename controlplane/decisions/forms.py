"""Forms of the routing pages: a test, a replay."""

from typing import TYPE_CHECKING, Any, get_args

from django import forms
from django.utils.translation import gettext_lazy as _

from controlplane.decisions.services import RouteQuestion
from controlplane.serving import selectors as serving
from controlplane.serving.models import Pool
from routing.core.document import PolicyName

if TYPE_CHECKING:
    from controlplane.tenancy.models import User

POLICIES = [(name, name) for name in get_args(PolicyName)]
_INPUT = {"class": "input"}
_SECRET = {"class": "input", "autocomplete": "off"}


def _text(label: Any, *, length: int = 250, help_text: Any = "") -> forms.CharField:
    return forms.CharField(
        label=label, max_length=length, required=False, help_text=help_text,
        widget=forms.TextInput(attrs=_INPUT),
    )  # fmt: skip


def _count(label: Any, *, most: int, help_text: Any = "") -> forms.IntegerField:
    return forms.IntegerField(
        label=label, required=False, min_value=1, max_value=most, help_text=help_text,
        widget=forms.NumberInput(attrs=_INPUT),
    )  # fmt: skip


class RouteForm(forms.Form):
    """A request by sizes or by text; with a key it can be sent for real."""

    pool = forms.ModelChoiceField(
        Pool.objects.none(), to_field_name="slug", label=_("Pool"), empty_label=None,
        widget=forms.Select(attrs=_INPUT),
    )  # fmt: skip
    tenant = _text(_("Tenant"), length=200)
    prompt_tokens = _count(_("Prompt tokens"), most=10_000_000)
    like = _text(
        _("Shares the prefix of decision"),
        help_text=_("Id of a recent decision; its cache counts."),
    )
    shared_tokens = _count(_("Shared tokens"), most=10_000_000)
    max_tokens = _count(_("Most output tokens"), most=1_000_000)
    policy = forms.ChoiceField(
        label=_("Policy"), choices=[("", _("the pool's")), *POLICIES], required=False,
        widget=forms.Select(attrs=_INPUT),
    )  # fmt: skip
    force = _text(_("Force endpoint"), help_text=_("No hard filter is overruled."))
    prompt = forms.CharField(
        label=_("Prompt"), required=False, max_length=1_000_000,
        help_text=_("Stays in the browser and the request; it is not stored or logged."),
        widget=forms.Textarea(attrs={"class": "input", "rows": 3}),
    )  # fmt: skip
    key = forms.CharField(
        label=_("Inference key"), required=False, max_length=300,
        help_text=_("Only to send. Cost and limits of its project apply; it is not kept."),
        widget=forms.PasswordInput(attrs=_SECRET),
    )  # fmt: skip

    def __init__(self, posted: Any, *, viewer: "User", **options: Any) -> None:
        super().__init__(posted, **options)
        self.fields["pool"].queryset = serving.pools_for_viewer(viewer)  # type: ignore[attr-defined]  # a model choice

    @property
    def is_sent(self) -> bool:
        """Whether the button to send was pressed."""
        return self.data.get("act") == "send"

    def clean(self) -> dict[str, Any]:
        """Sizes or text; text and a key to send."""
        values = super().clean() or {}
        if self.is_sent:
            for name in ("prompt", "key"):
                if not values.get(name):
                    self.add_error(name, _("Needed to send the request."))
        elif not values.get("prompt") and not values.get("prompt_tokens"):
            self.add_error("prompt_tokens", _("Give a number of tokens, or the text of a prompt."))
        return values

    def question(self) -> RouteQuestion:
        """The question of a valid form."""
        values = self.cleaned_data
        force = [values["force"]] if values["force"] else []
        return RouteQuestion(
            pool=values["pool"],
            tenant=values["tenant"] or "test",
            prompt=values["prompt"],
            prompt_tokens=values["prompt_tokens"],
            max_tokens=values["max_tokens"],
            like=values["like"],
            shared_tokens=values["shared_tokens"],
            policy=values["policy"],
            force=force,
        )


class ReplayForm(forms.Form):
    """What is to be different; every field is optional."""

    policy = forms.ChoiceField(
        label=_("Policy"), choices=[("", _("as recorded")), *POLICIES], required=False,
        widget=forms.Select(attrs=_INPUT),
    )  # fmt: skip
    force = forms.ChoiceField(
        label=_("Force endpoint"), required=False, widget=forms.Select(attrs=_INPUT)
    )
    remove = forms.ChoiceField(
        label=_("Leave out"), required=False, widget=forms.Select(attrs=_INPUT)
    )
    document_version = forms.IntegerField(
        label=_("Document version"), required=False, min_value=1, max_value=2**31,
        widget=forms.NumberInput(attrs=_INPUT),
    )  # fmt: skip

    def __init__(self, asked: Any, *, endpoints: list[str]) -> None:
        super().__init__(asked)
        names = [("", _("none")), *((name, name) for name in endpoints)]
        for field in ("force", "remove"):
            self.fields[field].choices = names  # type: ignore[attr-defined]  # a choice field
