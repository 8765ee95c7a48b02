"""Two pools under the same traffic, side by side, piece by piece. Pure: callers have the clock."""
