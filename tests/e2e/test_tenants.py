"""Tenants with real TCP: a tenant with four flows gets no more than one with a single flow."""

import json
import urllib.request

import pytest

from tests.support.fixtures import made_lab
from tests.support.lab import TOKEN, fairq, received, until

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]
FLOWS = {"h1": 1, "h2": 4}


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One flow of a tenant and four of another."""
    with made_lab(tmp_path_factory.mktemp("tenants")) as lab:
        hosts = {name: lab[name].IP() for name in FLOWS}
        config = "".join(f"[tenant.{name}]\nhosts = {address}\n" for name, address in hosts.items())
        lab.govern("tenants", config)
        ports = iter(range(5001, 5100))
        lab.sinks = {name: [lab.bulk(name, next(ports))[0] for _ in range(n)] for name, n in FLOWS.items()}
        assert until(lambda: all(received(sink) > 500_000 for sinks in lab.sinks.values() for sink in sinks))
        yield lab


def sent(lab):
    return {name: sum(map(received, sinks)) for name, sinks in lab.sinks.items()}


def ratio(lab, size=8_000_000):
    """What the tenant with four flows gets, over what the other one gets, while both get some."""
    before = sent(lab)
    assert until(lambda: sum(sent(lab).values()) - sum(before.values()) > size, 60)
    now = sent(lab)
    return (now["h2"] - before["h2"]) / (now["h1"] - before["h1"])


def rest(lab, method, path, body=None):
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(lab.manager.url + path, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.loads(answer.read() or "null")


def test_four_flows_of_a_tenant_get_about_what_one_of_another_gets(shared):
    assert any(0.5 < ratio(shared) < 2 for _ in range(3))
    shared.change_policy("fairq")
    assert any(ratio(shared) > 2 for _ in range(3))
    shared.change_policy("tenants")
    assert any(0.5 < ratio(shared) < 2 for _ in range(3))


def test_a_weight_is_changed_while_it_runs(shared):
    name = "h1"
    try:
        changed = rest(shared, "PUT", f"/v1/tenants/{name}", {"hosts": [shared[name].IP()], "weight": 4})
        assert changed["weight"] == 4
        assert any(ratio(shared) < 0.5 for _ in range(3))
    finally:
        rest(shared, "PUT", f"/v1/tenants/{name}", {"hosts": [shared[name].IP()], "weight": 1})


def test_an_announced_priority_gives_a_flow_more_of_its_tenant(shared):
    def first_gets_more():
        before = [received(sink) for sink in shared.sinks["h2"]]
        assert until(lambda: sum(map(received, shared.sinks["h2"])) - sum(before) > 4_000_000, 60)
        first, *others = [received(sink) - was for sink, was in zip(shared.sinks["h2"], before, strict=True)]
        return first > 2 * max(others)

    assert not all(first_gets_more() for _ in range(2))
    # The sinks of h1 have the ports before.
    flow = {"src": shared["h2"].IP(), "dst": shared["r"].IP(), "dport": 5001 + FLOWS["h1"], "ttl": 3600}
    row = rest(shared, "POST", "/v1/announcements", {**flow, "priority": 1000})
    try:
        assert len(row["flows"]) == 1
        assert any(first_gets_more() for _ in range(3))
        assert any(0.5 < ratio(shared) < 2 for _ in range(3)), "nothing changes for the other tenant"
    finally:
        rest(shared, "DELETE", f"/v1/announcements/{row['id']}")


def test_the_controller_shows_what_each_tenant_has(shared):
    def rows():
        return {row["name"]: row for row in rest(shared, "GET", "/v1/tenants")["tenants"]}

    def ports(row):
        return [port for port in row["ports"] if port["port"] == shared.port]

    assert until(lambda: all(any(p["goodput_bps"] for p in ports(rows()[name])) for name in FLOWS))
    found = rows()
    for name, flows in FLOWS.items():
        (port,) = ports(found[name])
        assert 0 < port["flows"] <= flows and port["pool_bytes"] > 0
    assert sum(port["share"] for name in FLOWS for port in ports(found[name])) == pytest.approx(1, abs=0.01)
    shown = fairq("show", "tenants", "--url", shared.manager.url)
    assert shown.returncode == 0 and all(name in shown.stdout for name in FLOWS), shown.stderr
