"""Stand-in for tests of NeMo's performance script for Nemotron4 15b."""

from nemo.performance import main

if __name__ == "__main__":
    main("pretrain_nemotron4_15b", "nemotron4", "15b")
