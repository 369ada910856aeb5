"""The Grafana dashboard, and the expressions in the docs, compared with a scrape: all their metrics and
labels exist.
"""

from __future__ import annotations

import json
import re

import promql_parser
import pytest
import yaml

from fairq_ryu.control.flows.flow_tracking import MAX_COPIES
from fairq_ryu.metrics.exporter import FAMILIES
from tests.support import full_controller
from tests.support.documents import blocks, read
from tests.support.promql import check, labels_left, parse, parts
from tests.support.scrape import names_of, scrape

DASHBOARD = json.loads(read("docs/grafana/fairq.json"))
# Labels that Prometheus adds to all scraped samples.
ADDED = {"job", "instance"}
VARIABLES = {each["name"]: each for each in DASHBOARD["templating"]["list"]}
PANELS = DASHBOARD["panels"]
ROWS = [panel for panel in PANELS if panel["type"] == "row"]
GRAPHS = [panel for panel in PANELS if panel["type"] != "row"]
QUERIES = [(panel, target) for panel in GRAPHS for target in panel["targets"]]
RULES = [
    rule
    for text in blocks(read("docs/metrics.md"), "yaml")
    for group in yaml.safe_load(text).get("groups", [])
    for rule in group["rules"]
]


@pytest.fixture(scope="module")
def there() -> dict[str, set[str]]:
    """The labels of each metric of a scrape."""
    controller = full_controller.full_controller()
    return {
        name: {label for sample in samples for label in sample.labels} | ADDED
        for name, samples in scrape(controller).items()
    }


# The dashboard


@pytest.mark.parametrize(("panel", "target"), QUERIES, ids=[f"{p['id']}{t['refId']}" for p, t in QUERIES])
def test_a_query_finds_its_metrics_and_its_legend_its_labels(panel, target, there):
    root = check(target["expr"], there)
    legend = set(re.findall(r"{{\s*(\w+)\s*}}", target["legendFormat"]))
    assert legend <= labels_left(root, there), panel["title"]
    assert target["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    for name in re.findall(r"\$(?!__)\{?(\w+)", target["expr"]):
        assert name in VARIABLES


def test_every_metric_is_shown_somewhere(there):
    shown = {
        node.name
        for _, target in QUERIES
        for node in parts(parse(target["expr"]))
        if isinstance(node, promql_parser.VectorSelector)
    }
    missing = [f.name for f in FAMILIES if not shown & set(names_of(f))]
    assert missing == []


def test_the_number_of_copies_that_can_wait_is_the_controller_s():
    (panel,) = (target["expr"] for _, target in QUERIES if "fairq_copies_waiting" in target["expr"])
    assert panel.endswith(f"/ {MAX_COPIES}")
    assert f"when {MAX_COPIES:,} copies wait (`fairq_copies_waiting`)" in read("docs/metrics.md")


def test_the_dashboard_has_the_format_of_grafana():
    assert DASHBOARD["id"] is None, "an id is the database's"
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,40}", DASHBOARD["uid"])
    assert DASHBOARD["title"] and DASHBOARD["schemaVersion"] == 42
    ids = [panel["id"] for panel in PANELS]
    assert all(isinstance(each, int) and each > 0 for each in ids) and len(set(ids)) == len(ids)
    assert {panel["type"] for panel in PANELS} <= {"row", "timeseries", "stat", "state-timeline", "table"}
    for panel in GRAPHS:
        assert panel["title"] and panel["targets"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        references = [target["refId"] for target in panel["targets"]]
        assert len(set(references)) == len(references)
        assert panel["fieldConfig"]["defaults"].get("unit") or panel["type"] in ("state-timeline", "table")
    assert all(not row["panels"] and row["collapsed"] is False for row in ROWS)


def test_panels_do_not_overlap():
    cells = [
        (x, y)
        for at in (panel["gridPos"] for panel in PANELS)
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert {x for x, _ in cells} == set(range(24)) and min(y for _, y in cells) == 0
    assert all(panel["gridPos"]["w"] >= 1 and panel["gridPos"]["h"] >= 1 for panel in PANELS)


def test_the_data_source_is_a_variable(there):
    assert VARIABLES["datasource"]["type"] == "datasource"
    assert VARIABLES["datasource"]["query"] == "prometheus"
    asked = [each for each in VARIABLES.values() if each["type"] == "query"]
    assert asked
    for each in asked:
        assert each["datasource"]["uid"] == "${datasource}"
        found = re.fullmatch(r"label_values\((.+), (\w+)\)", each["query"]["query"])
        assert found and each["definition"] == each["query"]["query"]
        root = check(found[1], there)
        assert found[2] in labels_left(root, there)


# The docs


def test_every_metric_that_the_page_names_is_there(there):
    for name in re.findall(r"\b(?:fairq|process)_[a-z_]+\b", read("docs/metrics.md")):
        assert name in there or name in {f.name for f in FAMILIES} | {"fairq_ryu", "fairq_", "process_"}, name


@pytest.mark.parametrize("rule", RULES, ids=[rule["alert"] for rule in RULES])
def test_an_alert_finds_its_metrics(rule, there):
    root = check(rule["expr"], there)
    labels_used = set(re.findall(r"\$labels\.(\w+)", json.dumps(rule.get("annotations", {}))))
    assert labels_used <= labels_left(root, there)


def test_there_are_alerts_and_a_scrape_config():
    assert len(RULES) >= 5
    (config,) = [
        document
        for text in blocks(read("docs/metrics.md"), "yaml")
        if "scrape_configs" in (document := yaml.safe_load(text))
    ]
    (job,) = config["scrape_configs"]
    assert job["static_configs"][0]["targets"] == ["127.0.0.1:8080"]
    assert job.get("metrics_path", "/metrics") == "/metrics"


@pytest.mark.parametrize(
    "wrong",
    [
        "fairq_port_queue_byte",
        'fairq_port_queue_bytes{flow="1"}',
        "rate(fairq_port_queue_bytes[1m])",
        "fairq_packet_ins_total",
        "sum by (flow) (fairq_flows)",
        "fairq_flows + on (dpid) fairq_rules",
        "sum(fairq_flows",
    ],
)
def test_the_check_finds_mistakes(wrong, there):
    with pytest.raises((AssertionError, ValueError)):
        check(wrong, there)
