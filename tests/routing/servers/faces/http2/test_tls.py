"""Certificates that are read again when their files change."""

import logging
import shutil
import ssl
from pathlib import Path

import pytest

from routing.servers.faces.http2.tls import LOOK_SECONDS, Certificate, CertificateError
from tests.routing.servers.faces.certificates import CERTIFICATES
from tests.routing.servers.faces.clock import Clock


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Of certificate a."""
    paths = tmp_path / "tls.crt", tmp_path / "tls.key"
    take(paths, "a")
    return paths


def take(paths: tuple[Path, Path], name: str) -> None:
    for path in paths:
        shutil.copyfile(CERTIFICATES / f"{name}{path.suffix}", path)


def test_the_context_speaks_nothing_old(files: tuple[Path, Path]) -> None:
    context = Certificate(*files, now=Clock()).context()

    assert context.minimum_version == ssl.TLSVersion.TLSv1_2


def test_files_that_change_are_read_again(files: tuple[Path, Path]) -> None:
    clock = Clock()
    certificate = Certificate(*files, now=clock)
    first = certificate.context()
    clock.now += LOOK_SECONDS
    assert certificate.context() is first
    take(files, "b")
    assert certificate.context() is first
    clock.now += LOOK_SECONDS

    assert certificate.context() is not first


def test_a_pair_that_does_not_fit_yet_leaves_the_last_one_in_force(
    files: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    """As when of two files one is written before the other."""
    clock = Clock()
    certificate = Certificate(*files, now=clock)
    first = certificate.context()
    shutil.copyfile(CERTIFICATES / "b.crt", files[0])
    for _ in range(3):
        clock.now += LOOK_SECONDS
        assert certificate.context() is first
    files[1].unlink()
    clock.now += LOOK_SECONDS
    assert certificate.context() is first
    shutil.copyfile(CERTIFICATES / "b.key", files[1])
    clock.now += LOOK_SECONDS

    assert certificate.context() is not first
    told = [one for one in caplog.records if one.levelno == logging.WARNING]
    assert len(told) == 2


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("content", [None, b"", b"nonsense", b"x" * 2_000_000])
def test_files_that_cannot_be_used_are_refused_by_name(
    files: tuple[Path, Path], number: int, content: bytes | None
) -> None:
    files[number].unlink()
    if content is not None:
        files[number].write_bytes(content)

    with pytest.raises(CertificateError, match=str(files[number])):
        Certificate(*files, now=Clock())


def test_a_key_of_another_certificate_is_refused(files: tuple[Path, Path]) -> None:
    shutil.copyfile(CERTIFICATES / "b.key", files[1])

    with pytest.raises(CertificateError, match="key values mismatch"):
        Certificate(*files, now=Clock())


def test_a_key_behind_a_password_is_refused_and_asks_nobody(files: tuple[Path, Path]) -> None:
    shutil.copyfile(CERTIFICATES / "locked.key", files[1])

    with pytest.raises(CertificateError, match="needs a password"):
        Certificate(*files, now=Clock())


def test_a_folder_is_no_file(files: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match="cannot be read"):
        Certificate(tmp_path, files[1], now=Clock())
