"""FairQ as published: Abdelmoniem and Bensaou, "FairQ: Fair and Fast Rate Allocation in Data Centers"
(arXiv:2401.04850), section III-A.
"""
