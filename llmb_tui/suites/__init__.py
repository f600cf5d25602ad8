"""Many runs submitted as one: a suite's rows, expected cost, progress and verdict.

Entry points for a screen, in order of use:

- choose a suite: `draft.SuiteDraft`; preview it at every key: `draft_plan.plan_draft` (pure);
- store it after the confirmation and load it again: `Services.suites`, a `suites.Suites`;
- submit it: `Services.submissions`, which work in threads;
- show its progress whenever a run has changed: `suite_progress.progress_of` with the records of the one feed (pure);
- show its result, at any time: `outcome.outcome_of` (pure).

`suite_file.read_suite` reads a suite from a file, `ready_made` makes one from a selection.
"""
