"""What several laws share: the GIF table, half-open limits, typical segments, RTT, allocation. Pure.

May import model only.
A change here concerns more than one law; what one law needs alone stays in its own module.
"""
