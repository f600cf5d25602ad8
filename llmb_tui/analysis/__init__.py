"""And beside others? Finished runs in; comparisons, suites, reports and archives out."""
