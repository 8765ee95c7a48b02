"""Which kinds a cluster lacks, and what brings them."""

from inventory.kubernetes import wanted


def test_what_is_found_and_what_is_missing_is_all_that_is_wanted() -> None:
    served = {("v1", "Pod"), ("apps/v1", "Deployment"), ("example.com/v1", "Other")}

    found = wanted.found(served)
    missing = wanted.missing(found)

    assert found == [["v1", "Pod"], ["apps/v1", "Deployment"]]
    assert len(found) + len(missing) == len(wanted.WANTED)
    assert ("v1", "Pod") not in {kind.pair for kind in missing}


def test_a_kind_that_kubernetes_does_not_bring_says_what_to_install() -> None:
    own = ("v1", "apps/v1", "autoscaling/v2", "policy/v1", "discovery.k8s.io/v1",
           "resource.k8s.io/v1")  # fmt: skip

    assert [kind for kind in wanted.WANTED if not kind.brings and kind.api_version not in own] == []


def test_what_is_needed_is_always_part_of_kubernetes() -> None:
    assert [kind for kind in wanted.WANTED if kind.needed and kind.brings] == []
