"""Forms of the fleet's pages."""

from django import forms
from django.utils.translation import gettext_lazy as _

from inventory.discovery.file_import import MOST_BYTES


class ReasonForm(forms.Form):
    """Why somebody does it; the audit keeps it."""

    reason = forms.CharField(label=_("Reason"), max_length=200)


class ImportForm(forms.Form):
    """A CSV file of nodes; without `apply` it is only checked."""

    file = forms.FileField(
        label=_("CSV file"), widget=forms.ClearableFileInput(attrs={"accept": ".csv,text/csv"})
    )
    apply = forms.BooleanField(required=False)

    def clean_file(self) -> forms.Field:
        """Refuse a file over the limit before it is read."""
        file = self.cleaned_data["file"]
        if file.size > MOST_BYTES:
            raise forms.ValidationError(
                _("The file has %(size)d bytes; at most %(limit)d are read."),
                params={"size": file.size, "limit": MOST_BYTES},
            )
        return file
