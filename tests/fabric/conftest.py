from tests.support.fixtures import lab, labs, nothing_left, own_lab, stub  # noqa: F401
