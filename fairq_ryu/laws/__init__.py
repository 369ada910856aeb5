"""The laws: a folder for each, with all that is of this law alone.

``__init__.py``: of a law that the switch runs, its number and parameters (:mod:`fairq_ryu.law_spec`); agent
and channel import this, so it imports no policy. ``law.h``: the law in C. ``policy.py``: its settings, what
it asks of the switch, the port law that the controller runs. :mod:`.registry` finds the first two by their
folders, set-up the policies.

The laws of papers, as published, run in the controller only: ``algorithm.py`` has the law with the paper's
names, in the order of its lines, each with its number; what the text leaves open, or has lost, is said there.

May import model, setting, law_spec and policies. Pure: time is an argument.
"""
