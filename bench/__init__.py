"""``make bench``: the costs of the window channel, each figure beside a baseline of the same run."""
