"""What went wrong with a cluster, in the reader's language: what it is and what to do."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _

from inventory.kubernetes.errors import ClusterError, CredentialsError
from inventory.kubernetes.sentences import SENTENCES
from inventory.models import Cluster


@dataclass(frozen=True, slots=True)
class Words:
    """One trouble."""

    what: str
    advice: str
    said: str = ""
    """What the other side said, as it came; empty when `what` says it all."""


def of_error(error: ClusterError) -> Words:
    """Words for an error at hand; the other side's words stand inside the sentence."""
    facts = error.facts if isinstance(error, CredentialsError) else {}
    words = _words(error.code, facts, str(error))
    what = f"{words.what} {words.said}".strip()
    return Words(what, words.advice)


def of_cluster(cluster: Cluster) -> Words | None:
    """Words for the last trouble that was noted; None when the last attempt went well."""
    if not cluster.error:
        return None
    return _words(cluster.error_code, cluster.error_facts, cluster.error)


def _words(code: str, facts: Mapping[str, object], said: str) -> Words:
    if code in SENTENCES:
        try:
            what = _(SENTENCES[code]).format(**facts)
        except KeyError:
            what = said  # noted by another version, whose sentence had other facts
        return Words(what, _advice_on(code))
    what, advice = _answers().get(code, (_("The API server refuses."), _("Look at its words.")))
    return Words(what, advice, said)


def _answers() -> dict[str, tuple[str, str]]:
    return {
        "cluster-unavailable": (
            _("The API server does not answer."),
            _("Look at its address, the network policies on the way, and the API server itself."),
        ),
        "cluster-answer": (
            _("What answers is not an API server, or something changes its answers."),
            _("Look at the address, and at what stands between."),
        ),
        "cluster-not-found": (
            _("The API server does not have what was asked for."),
            _("Look whether the address is that of a Kubernetes API server."),
        ),
        "cluster-refused": (
            _("The API server refuses."),
            _("Look whether the token or certificate is still good, and what it may do."),
        ),
    }


def _advice_on(code: str) -> str:
    if code == "not-in-cluster":
        return _("Run the workers in that cluster, or give the name of a folder of credentials.")
    if code == "no-credentials-folder":
        return _("Set CLUSTER_CREDENTIALS_DIR for the workers, and mount the credentials there.")
    if code.startswith("kubeconfig-"):
        return _("Make a ServiceAccount with a token, and write a kubeconfig that holds it.")
    return _("Correct the files in the folder of credentials; they are read at each attempt.")
