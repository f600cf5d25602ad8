"""llmb-tui: benchmark LLM pretraining on a GPU cluster from a terminal."""

__version__ = "0.1.0"
