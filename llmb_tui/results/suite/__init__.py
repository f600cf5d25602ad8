"""Many runs as one: a suite's rows, what they will cost, how they stand, and what submits each of them once.

What a screen calls, from here downwards:

- build or read one: `suite.make_suite`, `suite_file.read_suite`, `ready_made`;
- show what it would be, at every key: `suite_plan.plan_suite` (pure);
- keep it, find it again: `Services.suites`, a `suites.Suites`;
- submit it: `runner.SuiteRunner`, in a thread;
- show how it stands: `suite_progress.progress_of` with the records of the one feed of runs (pure).
"""
