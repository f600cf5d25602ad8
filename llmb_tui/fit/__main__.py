"""`python -m llmb_tui.fit`."""

from llmb_tui.fit.store import main

if __name__ == "__main__":
    main()
