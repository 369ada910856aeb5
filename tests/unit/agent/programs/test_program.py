"""The sizes of the maps."""

from fairq_ryu.agent.programs.program import ProgramLimits


def test_no_map_that_forgets_is_too_small_for_its_processors():
    """Each of 128 processors may keep 128 entries for itself, and half of the map is left."""
    few, many = (ProgramLimits(flows=65536, processors=number) for number in (2, 128))
    assert (few.silent, few.law_flows, few.rivals) == (32768, 16384, 4096)
    assert (many.silent, many.law_flows, many.rivals) == (32768, 32768, 32768)
