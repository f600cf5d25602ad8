"""A simulated Run:ai control plane, with as much of its published contract as the program uses.

What it answers follows NVIDIA's OpenAPI document, which `runapy`'s models are generated from and the tests hold it to;
what the program does not ask for is answered 404. No workload is a process: what a container has printed follows from
its record and the time, so nothing is lost when the demo is left and started again.
"""
