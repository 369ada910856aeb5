"""The load generator: small programs inside hosts, and the runner's end of them (workers.py, announcer.py).

May import the standard library, and modules of this package that need nothing else, because every host starts
it. A new role is a module here and an entry in generator.py.
"""
