"""Cache-aware endpoint decisions for LLM serving. Knows neither Django nor a database."""
