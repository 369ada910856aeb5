"""The answers that the tests of the live page make up are those of the REST interface, field by field."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.request import urlopen

import pytest

from fairq_ryu.rest.schema.rows import PortRow
from tests.support import rest_answers
from tests.support.fake_controller import SCENES, Deadlines, FakeController, Incast
from tests.support.rest_answers import STREAMED, fault, unlike


def faults(scene: Any) -> list[str]:
    """What differs from the schema in all that a scene answers."""
    found = [unlike(STREAMED["event"], event) for event in scene.events]
    found += [unlike(STREAMED["state"], scene.frame()), fault("/v1/policy", scene.policy_answer())]
    if scene.hosts:
        found.append(fault("/v1/flows?limit=5", scene.flows({"limit": "5"})))
    return [each for each in found if each]


@pytest.mark.parametrize("name", SCENES)
def test_a_scene_answers_as_the_schema_says(name):
    scene = SCENES[name]()
    for seconds in (0, 1, 3, 7):  # within a burst and between two
        scene.step(scene.started + seconds)
        assert faults(scene) == []


def test_a_switch_without_an_agent_and_one_that_is_not_connected_are_in_the_schema():
    scene = SCENES["leafspine"]()
    scene.switches[scene.edge[0]]["agent"] = False
    scene.switches[scene.above[0]] |= {"connected": False, "way": "windows"}
    assert faults(scene) == []


def objects(answer: Any) -> Iterator[dict[str, Any]]:
    """Every object within an answer, the first of each list."""
    if isinstance(answer, dict):
        yield answer
        for value in answer.values():
            yield from objects(value)
    elif isinstance(answer, list) and answer:
        yield from objects(answer[0])


def damaged(answer: Any) -> Iterator[tuple[str, Any]]:
    """The answer with each field missing, with each of a wrong type, and with one too many in each object."""
    for place, there in enumerate(objects(answer)):
        for name in there:
            for change in ("missing", "wrong"):
                other = copy.deepcopy(answer)
                found = list(objects(other))[place]
                if change == "missing":
                    del found[name]
                else:
                    found[name] = {"no": "field has this type"}
                yield f"{change} {name}", other
        other = copy.deepcopy(answer)
        list(objects(other))[place]["surplus"] = 1
        yield f"surplus in {sorted(there)}", other


def test_a_field_that_is_missing_unknown_or_of_a_wrong_type_is_a_fault():
    scene = Deadlines()
    scene.step(time.time())
    scene.event("loss", "3 packets lost", next(iter(scene.ports.values())))
    checked = [
        *((STREAMED["state"], each) for each in damaged(scene.frame())),
        *((STREAMED["event"], each) for each in damaged(scene.events[-1])),
    ]
    tried = [(what, unlike(model, answer)) for model, (what, answer) in checked]
    paths = {"/v1/flows": scene.flows({}), "/v1/policy": scene.policy_answer()}
    tried += [(what, fault(path, each)) for path, whole in paths.items() for what, each in damaged(whole)]
    assert len(tried) > 200
    assert [what for what, said in tried if not said] == []


def test_a_path_that_the_controller_does_not_have_is_a_fault():
    assert "answers nothing there" in fault("/v1/queues", {})
    assert fault("/v1/ports", {"ports": []}) == ""
    assert "detail" in fault("/v1/ports", {"type": "about:blank", "title": "No", "status": 404}, 404)


def test_what_a_row_does_not_say_is_null_where_it_may_be():
    row = rest_answers.row(PortRow, {"dpid": "1", "colour": "red"})
    assert next(iter(row)) == "dpid" and row["queue_bytes"] is None
    assert {"port", "name", "flows"}.isdisjoint(row)  # they may not: they must be given
    assert "colour" in row


def test_the_fake_controller_holds_what_it_sends_to_the_schema():
    """The fixture of the page's tests fails for a fault."""
    scene = Incast()
    fake = FakeController(scene).start()
    try:
        with urlopen(f"{fake.url}v1/policy") as answer:
            assert json.load(answer)["policy"] == "fairq"
        assert fake.faults == []
        scene.policy = 7
        urlopen(f"{fake.url}v1/policy").close()
        assert fake.faults == ["Policy: policy: Input should be a valid string"]
    finally:
        fake.stop()
