"""A simulated Run:ai control plane, with the part of its published API that the program uses.

Answers follow NVIDIA's OpenAPI document, from which `runapy`'s models are generated and which the tests compare with
them; other requests are answered with 404. No workload is a process: the output of a container follows from its record
and the time, so nothing is lost when the demo is left and started again.
"""
