"""What laws and the engine share: GIF table, half-open limits, typical segments, RTT, allocation, rules.

May import model only. A part is pure: time is an argument.
A change here concerns more than one law; what only one law needs stays in its own module.
"""
