"""The roles that the documentation gives are the rights that are asked for."""

import itertools
import re

import yaml

from inventory.kubernetes.rights import Right, needed
from inventory.models.cluster import NAMESPACE
from tests.architecture.sources import ROOT


def test_the_documented_roles_give_exactly_what_is_needed() -> None:
    text = (ROOT / "docs/clusters.md").read_text()
    block = re.search(r"```yaml\n(.*?)```", text, re.S)
    assert block is not None
    given = [
        Right(group, resource, verb, role["metadata"].get("namespace", ""))
        for role in yaml.safe_load_all(block[1])
        for rule in role["rules"]
        for group, resource, verb in itertools.product(
            rule["apiGroups"], rule["resources"], rule["verbs"]
        )
    ]

    assert sorted(given) == sorted(needed((NAMESPACE,)))
