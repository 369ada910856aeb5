"""Frames: parse, build, checksums, TCP options. Nothing else in Python knows the layout of a header. Pure.

May import model only.
A header field is read in parse.py and written in tcp_build.py.
"""
