"""Lost segments: which of them are reinjected or reported to their senders, and when. Pure.

May import model and fabric.flows.connection.
The stored losses are in losses.py; the decisions are in recovery.py, what may be decided in actions.py.
"""
