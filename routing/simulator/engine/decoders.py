"""The sequences of a batch that decode. A step costs the same however many there are.

Nothing of a sequence is touched by a step: what it has made follows from the step in which it
joined, and the blocks that the batch grows by follow from how many sequences cross the border of a
block at each residue of the step's number.
"""

import heapq
import itertools

from routing.simulator.engine.job import Job, State


class Decoders:
    """All numbers are of the step that comes next."""

    def __init__(self, block_tokens: int) -> None:
        self.jobs: dict[Job, None] = {}
        """In the order in which they joined."""
        self.step = 0
        self.context = 0
        """Tokens of all sequences, the one that each of them reads next included."""
        self._block_tokens = block_tokens
        self._crossings = [0] * block_tokens
        """Sequences that need a block more at steps of each residue."""
        self._ends: list[tuple[int, int, Job]] = []
        self._turn = itertools.count()

    def __len__(self) -> int:
        return len(self.jobs)

    def made(self, job: Job, steps: int) -> int:
        """Output tokens of a sequence of the batch after so many steps more."""
        return job.made + self.step + steps - job.joined_step

    def blocks_needed(self, steps: int) -> int:
        """Blocks that the sequences grow by in so many steps from now."""
        whole, rest = divmod(steps, self._block_tokens)
        needed = whole * len(self.jobs)
        if rest:
            start = self.step % self._block_tokens
            needed += sum(self._crossings[start : start + rest])
            over = start + rest - self._block_tokens
            if over > 0:
                needed += sum(self._crossings[:over])
        return needed

    def steps_within(self, blocks: int) -> int:
        """Steps until the first sequence ends, or so many free blocks are used up; at least one."""
        while self._is_stale(self._ends[0]):
            heapq.heappop(self._ends)
        steps = max(1, self._ends[0][0] - self.step)
        most = -(-steps // self._block_tokens) * len(self.jobs)
        if most <= blocks or self.blocks_needed(steps) <= blocks:
            return steps
        low, high = 1, steps
        while high - low > 1:
            middle = (low + high) // 2
            if self.blocks_needed(middle) <= blocks:
                low = middle
            else:
                high = middle
        return low

    def advance(self, steps: int) -> None:
        """So many steps are over."""
        self.step += steps
        self.context += steps * len(self.jobs)

    def join(self, job: Job) -> None:
        """The prompt of a job is computed, and its next token is out."""
        job.state = State.DECODING
        job.made += 1
        job.joined_step = self.step
        self.jobs[job] = None
        self.context += job.computed + 1
        self._crossings[self._residue(job)] += 1
        heapq.heappush(self._ends, (self._end_of(job), next(self._turn), job))

    def part(self, job: Job) -> None:
        """Out of the batch: `made`, `computed` and `private` are what they are now."""
        self._crossings[self._residue(job)] -= 1
        steps, size, start = self.step - job.joined_step, self._block_tokens, job.computed
        job.made += steps
        job.computed += steps
        job.private += -(-job.computed // size) - -(-start // size)
        self.context -= job.computed + 1
        del self.jobs[job]

    def take_ended(self) -> list[Job]:
        """Sequences that made their last token leave."""
        ended = []
        while self._ends and self._ends[0][0] <= self.step:
            entry = heapq.heappop(self._ends)
            if not self._is_stale(entry):
                self.part(entry[2])
                ended.append(entry[2])
        return ended

    def clear(self) -> None:
        """Forget all of them."""
        self.jobs.clear()
        self._ends.clear()
        self.context = 0
        self._crossings = [0] * self._block_tokens

    def _residue(self, job: Job) -> int:
        """It needs a block more before a step if all its blocks are full then."""
        return (job.joined_step - job.computed) % self._block_tokens

    def _end_of(self, job: Job) -> int:
        return job.joined_step + job.output_tokens - job.made

    def _is_stale(self, entry: tuple[int, int, Job]) -> bool:
        """It is of an earlier stay in the batch, which ended otherwise."""
        end, _, job = entry
        return job not in self.jobs or self._end_of(job) != end
