"""Write the golden files anew, to be read before they are committed."""

from tests.deploy.helm.chart import GOLDEN, NAMES, golden_text

GOLDEN.mkdir(exist_ok=True)
for name in NAMES:
    (GOLDEN / f"{name}.yaml").write_text(golden_text(name))
