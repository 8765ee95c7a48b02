"""What a run gave: numbers per stage, and pages and plots made of them."""
