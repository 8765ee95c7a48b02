"""`consort calibrate` fits an engine on published stages of its own pools, and on nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest

from controlplane.cli.main import main

ENGINE = ("amd-mi325x", "granite-4.1-8b")
SHORT = ("--rate", "3", "--replicas", "1", "--coefficient", "mfu")


def test_a_fit_says_what_it_was_made_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "fit.json"

    code = main(["calibrate", *ENGINE, *SHORT, "-o", "table", "--out", str(out)])

    told, fit = capsys.readouterr(), json.loads(out.read_bytes())
    assert code == 0
    assert list(fit["factors"]) == ["mfu"]
    assert "nxt-mi325x-granite-k8s" in fit["results"]
    assert {error["rate_qps"] for error in fit["errors"]} == {3.0}
    assert "published" in told.out
    assert "Fitted on nxt-mi325x-granite-k8s" in told.err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        pytest.param(("amd-mi325x", "gpt-2"), 4, "No published result of a pool", id="model"),
        pytest.param((*ENGINE, "--coefficient", "x"), 2, "Allowed: mfu", id="coefficient"),
        pytest.param((*ENGINE, "--result", "x"), 4, "No published result 'x'", id="result"),
        pytest.param((*ENGINE, "--result", "nxt-3v-granite-k8s"), 4, "judges", id="judge"),
    ],
)
def test_what_must_not_be_fitted_is_said(
    arguments: Any, code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = main(["calibrate", *arguments])

    told = capsys.readouterr()
    assert (ended, told.out) == (code, "")
    assert words in told.err
