"""Which blocks a job has."""

from routing.simulator.engine.job import Job
from routing.simulator.engine.job_blocks import JobBlocks
from routing.simulator.engine.kv_cache import KvCache

SIZE = 4


def pool(total: int = 10) -> tuple[KvCache, JobBlocks]:
    cache = KvCache(total)
    return cache, JobBlocks(cache, SIZE)


def job(*keys: int, tokens: int = 14) -> Job:
    return Job(number=1, keys=list(keys), prompt_tokens=tokens, output_tokens=5)


def computed(blocks: JobBlocks, one: Job, tokens: int) -> Job:
    assert blocks.cover(one, tokens)
    one.computed = tokens
    blocks.publish(one)
    return one


def test_full_blocks_become_findable_and_the_rest_stays_private() -> None:
    cache, blocks = pool()

    one = computed(blocks, job(1, 2, 3), 14)

    assert one.taken == [1, 2, 3]
    assert (one.private, cache.private) == (1, 1)


def test_the_block_with_the_last_token_is_never_taken_from_the_cache() -> None:
    _, blocks = pool()
    first = computed(blocks, job(1, 2, 3, tokens=12), 12)
    blocks.free(first)
    again = job(1, 2, 3, tokens=12)

    blocks.take_cached(again, 12)

    assert (again.taken, again.computed) == ([1, 2], 8)


def test_without_room_nothing_is_taken() -> None:
    cache, blocks = pool(2)
    one = job(1, 2, 3)

    assert not blocks.cover(one, 14)
    assert (one.private, cache.free) == (0, 2)


def test_a_job_that_leaves_gives_everything_back_and_leaves_what_others_can_find() -> None:
    cache, blocks = pool()
    one = computed(blocks, job(1, 2, 3), 14)

    blocks.free(one)

    assert (cache.private, cache.available) == (0, 10)
    assert cache.match([1, 2, 3], 3) == 3
    assert (one.taken, one.private, one.computed) == ([], 0, 0)
