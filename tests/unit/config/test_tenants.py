"""Sections [tenant.NAME] and [tenants]."""

from __future__ import annotations

import pytest

from fairq_ryu.config.loader import ignored_sections, load
from fairq_ryu.errors import UserError


def written(tmp_path, text):
    path = tmp_path / "fairq.conf"
    path.write_text(text)
    return path


def test_tenants_are_read(tmp_path):
    path = written(
        tmp_path, "[tenant.a]\nhosts = 10.0.1.0/24 fd00::1\nweight = 2\n[tenant.b]\nhosts=10.0.2.1\n"
    )
    config = load([path])
    assert [(each.name, each.weight) for each in config.tenants()] == [("a", 2), ("b", 1)]
    assert config.as_dict()["tenant.a"] == {"hosts": "10.0.1.0/24 fd00::1/128", "weight": 2}
    assert config.changed("fairq", {"alpha": 0.3}).tenants() == config.tenants()
    assert ignored_sections(path) == []


def test_the_last_file_decides_on_a_tenant(tmp_path):
    first, last = tmp_path / "1", tmp_path / "2"
    first.write_text("[tenant.a]\nhosts = 10.0.1.0/24\nweight = 2\n")
    last.write_text("[tenant.a]\nhosts = 10.0.3.0/24\n")
    (tenant,) = load([first, last]).tenants()
    assert (str(tenant.hosts[0]), tenant.weight) == ("10.0.3.0/24", 1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[tenant.a]\nweight = 2\n", "[tenant.a]: the tenant has no hosts"),
        ("[tenant.a]\nhosts = nowhere\n", "[tenant.a]: hosts: 'nowhere'"),
        ("[tenant.a]\nhosts = 10.0.0.1\nweight = 0\n", "weight"),
        ("[tenant.a]\nhosts = 10.0.0.1\nport = 1\n", "port"),
        ("[tenant.a b]\nhosts = 10.0.0.1\n", "'a b' is not a name"),
        ("[tenant.a]\nhosts = 10.0.0.1\n[tenant.b]\nhosts = 10.0.0.1\n", "tenants a and b both have"),
        ("[tenants]\nabove = sed\n", "'sed' is none of fairq, las"),
        ("[tenants]\nports = 443\n", "ports: '443'"),
        ("[tenants]\ndscp = 64:100\n", "dscp: '64:100'"),
    ],
)
def test_what_is_wrong_is_refused(tmp_path, text, why):
    with pytest.raises(UserError) as refused:
        load([written(tmp_path, text)])
    assert why in str(refused.value)
