"""Many runs as one: a suite's rows, what they will cost, how they stand, and what submits each of them once.

What a screen calls, from here downwards:

- choose one: `draft.SuiteDraft`; show what it would be, at every key: `draft_plan.plan_draft` (pure);
- keep it after the one yes, find it again: `Services.suites`, a `suites.Suites`;
- submit it: `Services.submissions`, which do it in threads;
- show how it stands whenever a run has changed: `suite_progress.progress_of` with the records of the one feed (pure);
- say what it has answered, at any time: `outcome.outcome_of` (pure).

`suite_file.read_suite` reads one instead, `ready_made` makes one of a selection.
"""
