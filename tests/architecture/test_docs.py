"""What the documentation says about layers is what the contracts hold."""

import re
import tomllib

from tests.architecture.sources import ROOT


def test_the_layers_in_the_documentation_equal_the_contracts() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = {contract["name"]: contract.get("layers") for contract in contracts["contracts"]}
    routing = next(value for name, value in layers.items() if name.startswith("routing: "))
    text = (ROOT / "docs/architecture.md").read_text()
    section = re.search(r"## Layers.*?```text\n(.*?)```", text, re.S)

    assert section is not None
    assert section[1].strip().splitlines() == [*layers["Between apps"], "---", *routing]


def test_every_link_between_documents_leads_somewhere() -> None:
    broken = [
        f"{page.name}: {target}"
        for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
        for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text())
        if not (page.parent / target).exists()
    ]

    assert broken == []
