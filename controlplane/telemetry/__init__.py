"""What engines and exporters measured: scrapes, samples, hourly roll-ups with coverage."""
