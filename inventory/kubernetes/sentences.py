"""Why credentials of a cluster cannot be used: a sentence for each code.

Places in braces are facts of the error. English here; pages translate the sentence by its text.
"""


def gettext_noop(text: str) -> str:
    """The text itself; the name marks it for the list of translations."""
    return text


_ = gettext_noop

SENTENCES = {
    "authority-unreadable": _("The certificate authority holds no certificate in PEM."),
    "certificate-and-key-differ": _(
        "The client certificate and its key do not belong together or cannot be read."
    ),
    "certificate-without-key": _("A client certificate needs its key, and a key its certificate."),
    "credentials-incomplete": _(
        "The folder of '{reference}' holds neither kubeconfig nor server, token and ca.crt."
    ),
    "credentials-missing": _("The folder of credentials holds no folder '{reference}'."),
    "file-not-regular": _("'{file}' is not a file."),
    "file-not-text": _("The file '{file}' is not text in UTF-8."),
    "file-outside": _("'{file}' leads out of the folder of its credentials."),
    "file-too-large": _("The file '{file}' has more than {limit} bytes."),
    "file-unreadable": _("The file '{file}' is missing or cannot be read."),
    "kubeconfig-empty": _("The kubeconfig holds no clusters."),
    "kubeconfig-entry-missing": _("The kubeconfig has no entry '{name}' in its list of {kind}."),
    "kubeconfig-impersonates": _(
        "The kubeconfig acts as somebody else ({key}); use a token or a certificate of its own."
    ),
    "kubeconfig-not-base64": _("'{key}' in the kubeconfig is not base64."),
    "kubeconfig-not-yaml": _("The kubeconfig is not YAML."),
    "kubeconfig-password": _(
        "The kubeconfig has a user name with a password ({key}); use a token or a certificate."
    ),
    "kubeconfig-proxy-url": _("The kubeconfig goes through a proxy (proxy-url); none is used."),
    "kubeconfig-runs": _(
        "The kubeconfig would run a program ({key}); use a token or a certificate."
    ),
    "kubeconfig-wrong-type": _("'{key}' in the kubeconfig is not a text."),
    "no-credentials-folder": _(
        "There is no folder of credentials: CLUSTER_CREDENTIALS_DIR is not set."
    ),
    "not-in-cluster": _(
        "This process does not run in a cluster, or its pod has no token of a ServiceAccount."
    ),
    "reference-not-a-name": _(
        "'{reference}' is not the name of a folder: small letters, digits, dots and hyphens."
    ),
    "server-not-an-address": _("The address of the API server is not one like https://host:6443."),
    "server-without-tls": _(
        "The address {server} has no TLS; that is allowed only for this machine."
    ),
    "token-unreadable": _("The token is empty, or holds spaces or other signs."),
    "verification-off": _(
        "Checking certificates is turned off for {server}; that is allowed only for this machine."
    ),
}
