"""The program that jobs run on nodes: copy, count, say."""

import json
from pathlib import Path

import pytest

from inventory import prefetch
from inventory.files import measure_folder


def said(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    found: dict[str, object] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return found


def test_the_last_line_says_what_was_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_text("{}")

    code = prefetch.main(["--folder", str(tmp_path)])

    found = said(capsys)
    assert (code, found["sight"], found["size_bytes"]) == (0, "there", 2)
    assert found["sha256"] == measure_folder(tmp_path, most_seconds=9).sha256


def test_a_failure_is_said_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = prefetch.main(["--folder", str(tmp_path / "nothing")])
    first = said(capsys)
    away = prefetch.main(
        ["--folder", str(tmp_path), "--source", "s3://m/x", "--endpoint", "http://127.0.0.1:1"]
    )

    assert (missing, away) == (1, 1)
    assert "is not there" in str(first["detail"])
    assert "did not answer" in str(said(capsys)["detail"])


@pytest.mark.parametrize(
    "words",
    [
        ["--folder", "models"],
        ["--folder", "/models", "--source", "s3://m/x"],
        ["--folder", "/models", "--endpoint", "http://127.0.0.1:1"],
        [],
    ],
)
def test_words_that_do_not_fit_are_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        prefetch.main(words)

    assert caught.value.code == 2
