"""Is it running well? Log bytes in; local copy, `Step`s, `RunState` and `Verdict` out."""
