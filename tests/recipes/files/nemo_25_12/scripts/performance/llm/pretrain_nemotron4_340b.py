"""Stand-in for tests of NeMo's performance script for Nemotron4 340b."""

from nemo.performance import main

if __name__ == "__main__":
    main("pretrain_nemotron4_340b", "nemotron4", "340b")
