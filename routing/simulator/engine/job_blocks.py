"""Which blocks a job has: shared ones by key, private ones by number."""

from routing.simulator.engine.job import Job
from routing.simulator.engine.kv_cache import KvCache


class JobBlocks:
    """Moves blocks between a cache and its jobs; `computed` tokens of a job lie in its blocks."""

    def __init__(self, cache: KvCache, block_tokens: int) -> None:
        self._cache = cache
        self._block_tokens = block_tokens

    def take_cached(self, job: Job, tokens: int) -> None:
        """The start of a job's first `tokens` that is cached; never all: the last is computed, to
        have its logits."""
        limit = (tokens - 1) // self._block_tokens
        hit = self._cache.match(job.keys_up_to(limit), limit)
        job.taken = job.keys[:hit]
        self._cache.take(job.taken)
        job.offered = hit
        job.computed = hit * self._block_tokens

    def cover(self, job: Job, tokens: int) -> bool:
        """Room for so many tokens; false, and nothing done, if there is none."""
        missing = -(-tokens // self._block_tokens) - len(job.taken) - job.private
        if missing > 0:
            if not self._cache.allocate(missing):
                return False
            job.private += missing
        return True

    def publish(self, job: Job) -> None:
        """Blocks that are full by now can be found by others."""
        whole = job.computed // self._block_tokens
        if whole > job.offered:
            published = self._cache.publish(job.keys_up_to(whole)[job.offered :])
            job.taken += published
            job.private -= len(published)
            job.offered = whole

    def free(self, job: Job) -> None:
        """Give all of them back."""
        if job.computed:
            self.publish(job)
        self._cache.leave(job.taken, job.private)
        job.taken, job.private, job.offered, job.computed = [], 0, 0, 0
