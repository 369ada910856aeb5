"""``make bench``: what the window channel costs, each figure beside a baseline of the same run."""
