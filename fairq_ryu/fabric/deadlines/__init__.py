"""Announced flows: announcements with a size and a deadline, and the flows that they belong to. Pure.

May import model only.
A field of an announcement is changed in request.py; the order of deadlines is in policies/parts.
"""
