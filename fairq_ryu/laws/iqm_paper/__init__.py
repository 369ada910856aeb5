"""IQM as published: Abdelmoniem and Bensaou, "Incast-Aware Switch-Assisted TCP Congestion Control for Data
Centers" (IEEE GLOBECOM 2015), section III.
"""
