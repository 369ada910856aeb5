"""The window laws in Python, one module a law, and the engine that runs them. Pure: no Ryu, no clock.

May import model and errors only.
A new law is a module here with its settings; what several laws share is in parts/.
"""
