"""Parts of laws in the controller that several of them use: the GIF table; and of the engine: installed
rules, sampling.

May import model only. A part is pure, and knows neither settings nor the engine: time is an argument.
A change here concerns every law that uses the part; settings and decisions of one law are in its own module.
"""
