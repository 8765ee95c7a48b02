"""Bodies of the inference APIs: their wire forms, and the prompt in each of them."""
