"""Messages to a bridge: the tables of its pipeline, rules, meters, barriers; and the errors that it answers
with.

May import model and channel, and Ryu's codec.
A rule or table of a bridge is changed in pipeline.py.
"""
