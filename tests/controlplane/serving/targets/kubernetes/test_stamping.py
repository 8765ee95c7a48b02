"""Marks on an engine's objects."""

from controlplane.serving.targets.kubernetes import stamping
from tests.controlplane.serving.targets.kubernetes.objects import HASH, deployment, manifest


def test_the_hash_is_on_the_object_and_on_its_pods_and_the_holder_on_the_object_only() -> None:
    marked = stamping.with_holder(manifest(), generation=3, token=7)

    template = marked["spec"]["template"]["metadata"]["annotations"]
    assert template == {"consort.dev/spec-hash": HASH}
    assert marked["metadata"]["annotations"] == {
        "consort.dev/spec-hash": HASH, "consort.dev/generation": "3",
        "consort.dev/fencing-token": "7",
    }  # fmt: skip
    assert stamping.token_of(marked) == 7


def test_the_manifest_that_was_given_stays_as_it_is() -> None:
    wanted = manifest()

    stamping.with_holder(wanted, generation=3, token=7)

    assert wanted == manifest()


def test_an_illegible_token_is_none() -> None:
    found = deployment()
    found["metadata"]["annotations"]["consort.dev/fencing-token"] = "seven"

    assert stamping.token_of(found) == 0
    assert stamping.token_of({}) == 0


def test_both_templates_of_an_engine_over_nodes_are_marked() -> None:
    group = {"leaderTemplate": {"spec": {}}, "workerTemplate": {"spec": {}}}
    wanted = {"kind": "LeaderWorkerSet", "metadata": {}, "spec": {"leaderWorkerTemplate": group}}

    [marked] = stamping.with_hash([wanted], HASH)

    for template in marked["spec"]["leaderWorkerTemplate"].values():
        assert template["metadata"]["annotations"] == {"consort.dev/spec-hash": HASH}
    assert stamping.runner([{"kind": "ResourceClaimTemplate"}, marked]) is marked
