"""``fairq sweep``: a scenario at each point of a grid of settings, under each policy, several times.

May import what experiments may, and ../report and ../runner; nothing of experiments imports it.
A directory of a sweep has sweep.json, which says what is measured (store.py), and a directory for each point,
which has what `fairq run` would write there.
"""
