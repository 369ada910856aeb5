"""What does each agent know, and what is it asked and told? One link for each connected agent.

Rooms that it may import: reports.
"""
