"""RSED as published: Lu, "SED: An SDN-Based Explicit-Deadline-Aware TCP for Cloud Data Center Networks"
(Tsinghua Science and Technology 21(5), 2016), section 4.
"""
