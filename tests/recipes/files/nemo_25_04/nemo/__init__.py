"""Stand-in for tests: the part of NeMo that submits jobs. Nothing in it trains."""
