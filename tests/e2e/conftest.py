from tests.support.fixtures import lab, nothing_left, stub  # noqa: F401
