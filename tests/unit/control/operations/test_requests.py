"""Requests: kept here or elsewhere, carried out by who follows their kind."""

import logging

import pytest

from fairq_ryu.control.operations.requests import Key, Requests, Unstored

RED, BLUE = Key("tenant", "red"), Key("tenant", "blue")


class Elsewhere:
    """A database; ``answers`` with what it is to answer."""

    def __init__(self, answer=True):
        self.answer, self.asked = answer, []

    def __call__(self, changes, expected):
        self.asked.append((dict(changes), dict(expected)))
        return self.answer


def followed(requests):
    seen = []
    requests.follow("tenant", lambda names: seen.append((sorted(names), requests.of("tenant"))))
    return seen


def test_alone_they_are_kept_and_carried_out_at_once():
    requests = Requests()
    seen = followed(requests)
    assert not requests.shared and requests.store({RED: {"weight": 1}, Key("policy"): "sed"})
    assert seen == [(["red"], {"red": {"weight": 1}})]
    assert requests.get("policy") == "sed" and requests.get(*BLUE) is None
    assert requests.store({RED: None})
    assert seen[1:] == [(["red"], {})]


def test_what_does_not_change_is_not_carried_out_again():
    requests = Requests()
    seen = followed(requests)
    requests.store({RED: 1})
    requests.store({RED: 1, BLUE: 2})
    assert [names for names, _ in seen] == [["red"], ["blue"]]


def test_with_another_value_than_expected_nothing_changes():
    requests = Requests()
    requests.store({RED: 1})
    assert not requests.store({RED: 3, BLUE: 3}, {RED: 2})
    assert requests.of("tenant") == {"red": 1}
    assert requests.store({RED: 3}, {RED: 1, BLUE: None})


def test_alone_a_request_that_cannot_be_carried_out_fails_and_is_not_kept():
    requests = Requests()
    seen = followed(requests)
    requests.follow("policy", lambda names: 1 / 0)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            requests.store({Key("policy"): "sed"})
        assert requests.get("policy") is None
    assert requests.store({RED: 1}) and len(seen) == 1


def test_elsewhere_they_count_when_they_are_found_there():
    elsewhere = Elsewhere()
    requests = Requests(elsewhere)
    seen = followed(requests)
    assert requests.shared and requests.store({RED: {"b": 1, "a": 2}, BLUE: None}, {RED: None})
    assert elsewhere.asked == [({RED: '{"a": 2, "b": 1}', BLUE: None}, {RED: None})]
    assert seen == [] and requests.of("tenant") == {}
    requests.found(elsewhere.asked[0][0])
    assert seen == [(["red"], {"red": {"a": 2, "b": 1}})]


def test_what_may_be_stored_or_not_is_said():
    with pytest.raises(Unstored, match="may be stored or not"):
        Requests(Elsewhere(None)).store({RED: 1})
    assert Requests(Elsewhere(False)).store({RED: 1}, {RED: 2}) is False


def test_whatever_stands_in_the_database_the_rest_is_carried_out(caplog):
    requests = Requests(Elsewhere())
    requests.follow("policy", lambda names: 1 / 0)
    seen = followed(requests)
    with caplog.at_level(logging.ERROR):
        requests.found({("policy", ""): '"sed"', ("tenant", "red"): "{not json", ("tenant", "blue"): "1"})
        requests.found({("unknown", "x"): "1"})
    assert seen == [(["blue"], {"blue": 1})]
    assert "requests of kind policy cannot be carried out" in caplog.text


def test_what_people_have_written_into_the_database_is_replaced_as_it_stands_there():
    """Spaces, an order of their own, or no JSON at all: who replaces what is there means that."""
    elsewhere = Elsewhere()
    requests = Requests(elsewhere)
    for text, value in (('{"b":1,"a":2}', {"a": 2, "b": 1}), ("{not json", None)):
        requests.found({RED: text})
        assert requests.get(*RED) == value
        requests.store({RED: 3}, {RED: value})
        assert elsewhere.asked.pop() == ({RED: "3"}, {RED: text})
    requests.store({RED: 3}, {RED: 4})
    assert elsewhere.asked.pop() == ({RED: "3"}, {RED: "4"})
    requests.found({RED: None})
    requests.store({RED: 3}, {RED: None})
    assert elsewhere.asked.pop() == ({RED: "3"}, {RED: None})
