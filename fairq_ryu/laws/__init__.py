"""The laws of the papers, as published: a folder for each, to be read beside its paper.

``algorithm.py`` has the law with the paper's names, in the order of its lines, each with its number; what the
text leaves open, or has lost, is said there. ``policy.py`` has its settings, what it shows, and the port law
by which the controller runs it: it learns of flows by packet-in, reads the queue, and sets windows by rules.
No switch runs one of them. The laws of this project, which the switch runs, are in ``policies``.

May import model, setting and policies. Pure: time is an argument.
"""
