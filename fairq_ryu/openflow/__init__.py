"""What is said to a bridge: the tables of its pipeline, rules, meters, barriers, and what it refuses.

May import model and channel, and Ryu's codec.
A rule or table of a bridge is changed in pipeline.py.
"""
