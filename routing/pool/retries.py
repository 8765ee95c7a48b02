"""Rules of retries that whoever drives a pool keeps: servers and the simulator alike."""

PREFILL_FAILURES = 2
"""After so many failed prefill endpoints the prompt is computed where it is decoded."""
RETRY_SHARE = 1.5
"""Retries begin within so many times the pool's time-out of a first token."""
TICKET_MARGIN_SECONDS = 2.0
"""A computed prompt is not handed on shortly before its blocks are dropped."""
MOST_BREAKS = 5
"""Times that one answer goes on; a pool that breaks more often is not worth a sixth engine."""
PATIENCE_SECONDS = 10.0
"""How long a broken stream waits for an endpoint that can go on with it."""
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.1, 1.0
"""Between two looks for such an endpoint; each pause is twice the one before."""
RECHECK_SECONDS = 0.05
"""The queue is looked at so often while somebody waits: time alone drains engines, too."""
PAUSE_SECONDS = 0.005
"""After a look that found nobody who fits, the next one waits so long: pricing the head at each of
hundreds of events per second would cost more than it gains."""
UNSTREAMED_TOKENS = 8192
UNSTREAMED_SECONDS_PER_TOKEN = 0.25
"""A whole answer may take as long as its first token plus so much for each token of it; an answer
whose length nobody states counts as so long."""
