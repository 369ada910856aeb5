"""What ryu-manager loads: one application a policy, and the controller that all of them are.

May import everything that runs in the controller (control, rest, metrics and what those may).
A new policy of ours gets a file of three lines here; a new event of Ryu gets a handler in controller.py.
"""
