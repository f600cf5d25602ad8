"""The stored files and answers of one version, with which every later version is compared.

`home/` holds genuine runs of all four procedures (the demo clusters and the rig made them), two suites of which one is
unfinished, a log of another training, settings and clusters. `evidence.tar.zst` is an export of some of the runs.
`answers/` holds the output of that version's verbs, one file each, with the exit code in the first line.

`python -m tests.baseline` writes the answers and the archive again. Do that only if the contract changes.
"""
