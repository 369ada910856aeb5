"""Lost segments: which of them are to be put back or asked for again, and when. Pure.

May import model and fabric.flows.connection.
What an agent hands over arrives in losses.py; the decision is in recovery.py.
"""
