"""llmb-tui: benchmark LLM pretraining on a GPU cluster from a terminal."""

__version__ = "1.0.0"
