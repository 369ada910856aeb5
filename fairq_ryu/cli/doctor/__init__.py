"""`fairq doctor`: checks what this machine has and lacks for running fairq_ryu, and names remedies.

Imports the standard library, rich, config.programs, agent.peers and experiments.kernel_kinds only, so that it
works where other parts do not.
A check is a function in the module of its subject, and an entry in checklist.py.
"""
