"""Frames: parse, build, checksums, TCP options. Nothing else in Python knows the layout of a header. Pure.

May import model only, and the standard library without I/O, so that generators in hosts start fast.
A header is declared in headers.py, read in parse.py and written in build.py; an option of TCP is read in
tcp_options.py.
"""
