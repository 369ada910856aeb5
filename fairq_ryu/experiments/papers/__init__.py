"""``fairq run papers``: each paper's experiments under the policies that belong to them, and its claims.

May import what experiments may, and ../report, ../sweep and ../simulator; nothing of experiments imports it.
The plan and the claims are data: ../scenarios/papers/*.toml, read by plan.py. A directory of a series has
papers.json, and a directory for each experiment, which has what a sweep of a single point has.
"""
