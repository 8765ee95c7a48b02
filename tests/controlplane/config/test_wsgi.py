"""What the web process carries in its memory."""

import subprocess
import sys

LOAD = """
import sys
from controlplane.config.wsgi import application
from django.urls import get_resolver

def views(patterns):
    return sum(views(p.url_patterns) if hasattr(p, "url_patterns") else 1 for p in patterns)

print(views(get_resolver().url_patterns), *sorted(sys.modules))
"""


def test_the_web_process_does_not_load_the_library_for_clusters() -> None:
    run = subprocess.run(
        [sys.executable, "-c", LOAD], capture_output=True, text=True, timeout=120, check=True
    )
    count, *modules = run.stdout.split()

    assert int(count) > 100, "every address is loaded, with all that its views import"
    assert "inventory.kubernetes.client" in modules
    assert [name for name in modules if name.split(".")[0] == "kubernetes"] == []
