"""Forms of the fleet's pages."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext_lazy as _

from inventory import selectors
from inventory.discovery.file_import import MOST_BYTES
from inventory.models import Cluster, Site
from inventory.models.cluster import NAMESPACE

if TYPE_CHECKING:
    from controlplane.tenancy.models import User

_INPUT = {"class": "input"}


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


class _ConnectionForm(forms.Form):
    """What is said about a cluster whenever one is added or changed."""

    name = forms.CharField(label=_("Name"), max_length=100, widget=forms.TextInput(attrs=_INPUT))
    connection_reference = forms.CharField(
        label=_("Connection reference"),
        max_length=200,
        required=False,
        widget=forms.TextInput(attrs=_INPUT),
        help_text=_(
            "Kubernetes only: 'in-cluster', or the name of a folder below the workers' folder of"
            " credentials. Never a token or a password."
        ),
    )
    namespace = forms.CharField(
        label=_("Namespace of the engines"),
        max_length=63,
        initial=NAMESPACE,
        widget=forms.TextInput(attrs=_INPUT),
    )


class ClusterForm(_ConnectionForm):
    """A cluster to be added."""

    slug = forms.SlugField(
        label=_("Short name"), max_length=100, widget=forms.TextInput(attrs=_INPUT)
    )
    site_id: "forms.ModelChoiceField[Site]" = forms.ModelChoiceField(
        label=_("Site"),
        queryset=Site.objects.none(),
        widget=forms.Select(attrs=_INPUT),
    )
    kind = forms.ChoiceField(
        label=_("Kind"), choices=Cluster.Kind.choices, widget=forms.Select(attrs=_INPUT)
    )
    field_order = ["slug", "name", "site_id", "kind", "connection_reference", "namespace"]

    def __init__(self, *args: Any, viewer: "User", **options: Any) -> None:
        super().__init__(*args, **options)
        sites: forms.ModelChoiceField[Site] = self.fields["site_id"]  # type: ignore[assignment]
        sites.queryset = selectors.sites_for_viewer(viewer)

    def values(self) -> dict[str, Any]:
        """As the service takes them."""
        site: Site = self.cleaned_data["site_id"]
        return self.cleaned_data | {"site_id": site.pk}


class ClusterChangeForm(_ConnectionForm):
    """What may be changed of a cluster, with the reason."""

    reason = forms.CharField(
        label=_("Reason"), max_length=200, widget=forms.TextInput(attrs=_INPUT)
    )
