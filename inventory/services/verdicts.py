"""Sentences for what is wrong with the rows of an import file, in the reader's language."""

from typing import Any

from django.utils.translation import gettext_lazy as _

from inventory.discovery.file_import import RowError

SENTENCES = {
    "encoding": _("The file is not UTF-8. Save it as UTF-8 and send it again."),
    "empty": _("The file is empty. Its first line names the columns, at least: {needed}."),
    "no-rows": _("The file names columns and no node. Give one row per node."),
    "csv": _("This is not a CSV line: {why}."),
    "too-many-rows": _("The file has more than {most} rows. Split it by site or cluster."),
    "field-count": _("The row has {found} fields; the header has {expected}."),
    "column-missing": _("The column '{column}' is missing."),
    "column-misspelt": _("The column '{column}' is unknown. Did you mean '{near}'?"),
    "column-unknown": _("The column '{column}' is unknown. Allowed: {allowed}."),
    "column-twice": _("The column '{column}' is there twice."),
    "missing": _("The column '{column}' is empty. It is needed in every row."),
    "text": _("The column '{column}' holds a zero byte."),
    "formula": _("'{value}' starts with '{first}', which a spreadsheet takes for a formula."),
    "too-long": _("The column '{column}' holds more than {most} characters."),
    "slug": _("'{value}' is not a short name. Use letters, digits, '-' and '_'."),
    "no-accelerators": _("'{value}' accelerators are not a node. Give 1 to {most}."),
    "whole-number": _("'{value}' is not a whole number from 1 to {most}."),
    "number": _("'{value}' is not a number from {least} to {most}, written like 1.35."),
    "choice": _("'{value}' is not allowed. Allowed: {allowed}."),
    "country": _("'{value}' is not a country. Write two capital letters, like KR."),
    "currency": _("'{value}' is not a currency. Write three capital letters, like KRW."),
    "serial-count": _("There are {serials} serials for {accelerators} accelerators."),
    "serial-twice": _("The serial {serial} of {vendor} is in row {row} already."),
    "node-twice": _("The node {node} of the cluster {cluster} is in row {row} already."),
    "two-vendors": _(
        "A node has accelerators of one vendor: {node} has {vendor} in row {row} and "
        "{other_vendor} here."
    ),
    "site-differs": _("The site {site} is described in another way in row {row}."),
    "unknown-vendor": _("The vendor '{vendor}' is unknown. Known: {allowed}."),
    "unknown-model": _(
        "The accelerator model '{model}' is unknown. Models of {vendor}: {allowed}. If the list is "
        "empty, load the catalogue."
    ),
    "model-of-other-vendor": _("The model {model} is of {other_vendor}, not of {vendor}."),
    "unknown-site": _(
        "The site '{site}' does not exist. Give a country to make it, or one of: {allowed}."
    ),
    "unknown-cluster": _(
        "The cluster '{cluster}' does not exist. Give cluster_kind to make it, or one of: "
        "{allowed}."
    ),
    "cluster-of-other-site": _("The cluster {cluster} is at the site {site}, not {other_site}."),
    "other-vendor-exists": _(
        "A node has accelerators of one vendor: {node} exists with {vendor}, the row says "
        "{other_vendor}."
    ),
    "node-differs": _(
        "The node {node} exists as {node_type}, and an import only adds. Change the node itself, "
        "or leave the row out."
    ),
    "serial-in-use": _("The serial {serial} of {vendor} belongs to {accelerator} already."),
    "taken-meanwhile": _(
        "Somebody else added '{value}' while the file was checked. Send the file again."
    ),
    "refused": _("The row cannot be stored: {why}"),
}


def shown(error: RowError) -> dict[str, Any]:
    """Row, column, code and the sentence in the active language, ready for JSON."""
    return {
        "row": error.row,
        "column": error.column,
        "code": error.code,
        "detail": str(SENTENCES[error.code]).format(**error.facts),
    }
