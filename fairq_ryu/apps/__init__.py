"""The applications that ryu-manager loads: one for each policy, and the controller that is their base class.

May import everything that runs in the controller (control, rest, metrics and what those may).
A new policy of this package gets a file of one class here; a new event of Ryu gets a handler in
controller.py.
"""
