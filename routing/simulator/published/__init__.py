"""Published stages as data, and their load: what the simulator is fitted on, and judged by."""
