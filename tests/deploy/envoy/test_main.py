"""The command that prints a bootstrap."""

from pathlib import Path

import pytest
import yaml

from deploy.envoy.__main__ import main
from routing.core.document import encode_document
from tests.deploy.envoy.wirings import pool

PLACES = ["--listen", "0.0.0.0:8080", "--picker", "10.0.0.5:9001"]


@pytest.fixture
def document(tmp_path: Path) -> str:
    path = tmp_path / "pool.json"
    path.write_bytes(encode_document(pool()))
    return str(path)


def test_it_prints_yaml(document: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = main([document, "--face", "ext_proc", "--body-mode", "buffered", *PLACES])

    assert status == 0
    assert [
        one["name"]
        for one in yaml.safe_load(capsys.readouterr().out)["static_resources"]["clusters"]
    ] == ["engines", "picker"]


def test_what_does_not_fit_is_a_sentence(document: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = main([document, "--face", "ext_proc", "--fail", "open", *PLACES])

    told = capsys.readouterr()
    assert (status, told.out) == (2, "")
    assert "body mode 'buffered'" in told.err


def test_a_file_that_is_no_document_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pool.json"
    path.write_text("{}")

    assert main([str(path), "--face", "ext_authz", *PLACES]) == 2
    assert capsys.readouterr().err
