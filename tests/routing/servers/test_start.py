"""What a process does to itself at its start."""

import gc
import resource

from routing.servers.start import calm_collector, raise_file_limit


def test_as_many_files_may_be_open_as_the_system_allows() -> None:
    raise_file_limit()

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert soft == hard


def test_the_collector_leaves_what_is_there_alone_and_comes_less_often() -> None:
    before = gc.get_threshold()
    try:
        calm_collector()

        assert gc.get_freeze_count() > 0
        assert gc.get_threshold()[0] == 5_000
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
