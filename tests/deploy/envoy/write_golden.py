"""Write the golden files anew, to be read before they are committed."""

from deploy.envoy.bootstrap import bootstrap
from tests.deploy.envoy.wirings import GOLDEN, KEPT, wiring

for name, changes in KEPT.items():
    (GOLDEN / f"{name}.yaml").write_text(bootstrap(wiring(**changes)))
