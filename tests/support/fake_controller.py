"""A controller for the live page without a network: the same paths, with invented figures that change.

Each answer is held to the schema of the REST interface: `faults` has what differs from it.
`python -m tests.support.fake_controller incast` serves one at port 8080, to look at.
"""

import contextlib
import json
import math
import mimetypes
import random
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from fairq_ryu.far_queue import FAR
from fairq_ryu.rest.schema.rows import PortRow
from tests.support import rest_answers

PAGE = Path(__file__).resolve().parents[2] / "fairq_ryu/page"
INTERVAL = 0.5
MOST_GIF = 200
CSP = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


def dpid(number):
    return f"{number:016x}"


class Scene:
    """Switches by name, links between them, and hosts; one host receives what all others send."""

    def __init__(self, policy="fairq"):
        self.policy = policy
        self.rng = random.Random(1)
        self.switches = {}  # dpid -> {"name", "connected", "agent", "way"}
        self.ports = {}  # (dpid, port) -> row
        self.links = []
        self.hosts = []
        self.senders = []
        self.flow_count = 24
        self.events = []
        self.last_event = 0
        self.started = time.time()
        self.burst = 0.0

    def switch(self, number, name):
        self.switches[dpid(number)] = {"name": name, "connected": True, "agent": True, "way": "paths"}
        return dpid(number)

    def port(self, switch, role="host", limit=0, rate=10_000_000_000, name=None):
        number = 1 + sum(1 for at, _ in self.ports if at == switch)
        row = {
            "dpid": switch,
            "port": number,
            "name": name or f"{self.switches[switch]['name']}-eth{number}",
            "role": role,
            "flows": 0,
            "active": 0,
            "queue_bytes": 0,
            "peak_bytes": 0,
            "limit_bytes": limit,
            "rate_bps": rate,
            "drops": 0,
            "flow_windows": 0,
            "mode": "act",
            "lowered": 0,
            "would_lower": 0,
            "policy": self.policy,
            "tx_bytes": 0,
            "rx_bytes": 0,
            "tx_bps": 2000,
            "rx_bps": 1500,
            "target_bytes": limit // 4 or None,
            "state": "NOM" if limit else None,
            "incast": False if limit else None,
        }
        self.ports[switch, number] = rest_answers.row(PortRow, row)
        return [switch, number]

    def host(self, switch, address, **options):
        at = self.port(switch, **options)
        mac = f"02:00:00:00:00:{len(self.hosts):02x}"
        self.hosts.append({"mac": mac, "vlan": 0, "at": at, "addresses": [address]})
        return at

    def link(self, a, b, **options):
        ends = self.port(a, "link", **options), self.port(b, "link", **options)
        self.links.append({"a": ends[0], "b": ends[1]})
        return ends

    # The figures

    def step(self, now):
        """Advance by half a second."""
        phase = now - self.started
        self.burst = max(0.0, 1 - (phase % 8) / 2)
        for row in self.ports.values():
            load = self.loads.get((row["dpid"], row["port"]))
            if load is None:
                continue
            down, up = load
            wobble = 0.9 + 0.1 * self.rng.random()
            row["tx_bps"], row["rx_bps"] = int(down * wobble), int(up * wobble)
            row["tx_bytes"] += row["tx_bps"] // 16
            row["rx_bytes"] += row["rx_bps"] // 16
            if row["limit_bytes"] and row["tx_bps"] > 0.8 * row["rate_bps"]:
                self._fill(row, phase)

    def _fill(self, row, phase):
        limit, target = row["limit_bytes"], row["limit_bytes"] / 4
        level = target * (1 + 0.12 * math.sin(phase * 1.7)) + self.burst * limit * 0.45
        level = min(limit, level + self.rng.uniform(-0.04, 0.04) * limit)
        row["queue_bytes"] = int(max(0, level))
        row["peak_bytes"] = int(min(limit, level * 1.25))
        row["active"] = 8 + int(24 * self.burst)
        row["flows"] = 40
        row["pool_bytes"] = int(42_000 - 9_000 * self.burst)
        row["incast"] = self.burst > 0
        before, row["state"] = row["state"], "CNG" if level > 0.5 * limit else "NOM"
        if level > 0.68 * limit:
            row["drops"] += 3
        if before != row["state"]:
            words = {"CNG": "congested", "NOM": "back to normal"}[row["state"]]
            self.event(row["state"].lower(), f"{row['name']}: {words}, queue {row['queue_bytes']} bytes", row)
            if row["state"] == "CNG":
                self.event("incast", f"{row['name']}: incast, 16 senders at once", row)

    @property
    def loads(self):
        """(dpid, port) -> bit/s out of and into the switch."""
        return {}

    def event(self, kind, message, row=None):
        self.last_event += 1
        self.events.append(
            {
                "id": self.last_event,
                "time": time.time(),
                "kind": kind,
                "message": message,
                "dpid": row and row["dpid"],
                "port": row and row["port"],
                "flow": None,
                "count": 1,
            }
        )
        del self.events[:-500]

    # The answers

    def connected_ports(self):
        rows = []
        for row in self.ports.values():
            switch = self.switches[row["dpid"]]
            if not switch["connected"]:
                continue
            if not switch["agent"]:
                unknown = ("active", "queue_bytes", "peak_bytes", "limit_bytes", "rate_bps", "drops", "state")
                row = {**row, **dict.fromkeys((*unknown, "target_bytes", "pool_bytes", "incast"))}
            rows.append(row)
        return rows

    def health(self):
        there = {key: each for key, each in self.switches.items() if each["connected"]}
        return {
            "status": "ok",
            "failing": [],
            "version": "0.1.0",
            "policy": self.policy,
            "uptime_s": round(time.time() - self.started, 3),
            "bridges": len(there),
            "agents": sum(each["agent"] for each in there.values()),
            "agents_missing": sorted(key for key, each in there.items() if not each["agent"]),
            "ways": {
                way: [key for key, each in there.items() if each["way"] == way]
                for way in ("windows", "normal", "paths")
            },
            "loop_delay_s": 0.0004,
        }

    def frame(self):
        ports, gif = self.connected_ports(), self.gif()
        here = {(row["dpid"], row["port"]) for row in ports}
        return {
            "time": time.time(),
            "health": self.health(),
            "ports": ports,
            "switches": [
                {"dpid": key, "connected": each["connected"], "way": each["way"], "limits": []}
                | {"agent": each["agent"] and (each["connected"] or each["way"] == "windows")}
                | {"ports": sum(at == key for at, _ in here)}
                for key, each in self.switches.items()
            ],
            "links": [each for each in self.links if {tuple(each["a"]), tuple(each["b"])} <= here],
            "hosts": [each for each in self.hosts if tuple(each["at"]) in here],
            "gif": gif[:MOST_GIF],
            "gif_total": len(gif),
            "tenants": self.tenants(),
            "flows_total": self.flow_count,
            "flows_active": min(self.flow_count, 8 + int(16 * self.burst)),
            "interval_s": INTERVAL,
        }

    def tenants(self):
        return [_tenant("others", 1, [])]

    def gif(self):
        return []

    def flow(self, number):
        addresses = [each["addresses"][0] for each in self.hosts]
        receiver = addresses[-1]
        source = number % max(1, len(addresses) - 1)
        return {
            "src": addresses[source],
            "dst": receiver,
            "sport": 32768 + number % 28000,
            "dport": 5001 + number // 28000,
            "vlan": 0,
            "state": ("established", "established", "half-closed", "closed")[number % 4],
            "ports": self.path(source, number),
            "back_ports": [self.hosts[source]["at"]],
            "wscale": 9,
            "back_wscale": 9,
            "mss": 1460,
            "bytes": 11500 if number > 7 else int((time.time() - self.started) * 2_500_000),
            "back_bytes": 0,
            "age_s": 12.5,
            "idle_s": 0.1,
            "pinned": len(self.switches) > 1,
            "rtt_s": 0.0021,
            "window_bytes": 2920 if number > 7 else 4380,
            "back_window_bytes": None,
            "window_kind": "pool",
            "rewritten": number * 37,
        }

    def path(self, source, number):
        return [self.hosts[-1]["at"]]

    def flows(self, query):
        limit, offset = int(query.get("limit", 100)), int(query.get("offset", 0))
        rows = (self.flow(number) for number in range(self.flow_count))
        tests = {
            "src": lambda row, wanted: row["src"] == wanted,
            "dst": lambda row, wanted: row["dst"] == wanted,
            "state": lambda row, wanted: row["state"] == wanted,
            "port": lambda row, wanted: ":" in wanted or int(wanted) in (row["sport"], row["dport"]),
        }
        found = [
            row
            for row in rows
            if all(test(row, query[name]) for name, test in tests.items() if name in query)
        ]
        return {
            "flows": found[offset : offset + limit],
            "total": len(found),
            "limit": limit,
            "offset": offset,
        }

    def policy_answer(self):
        row = {"type": "number", "minimum": 0, "maximum": 1, "choices": []}
        parameters = [
            {
                "name": "alpha",
                "value": 0.25,
                "unit": "",
                "default": 0.25,
                "help": "target, as a share of the buffer",
            },
            {
                "name": "interval",
                "value": 0.002,
                "unit": "s",
                "default": 0.002,
                "help": "how often queues are read",
            },
        ]
        return {
            "policy": self.policy,
            "parameters": [{**row, **each} for each in parameters],
            "ports": [],
            "available": [],
        }


class Incast(Scene):
    """One switch, 16 senders, one receiver behind a shallow port."""

    def __init__(self, senders=16, **options):
        super().__init__(**options)
        s1 = self.switch(1, "s1")
        for number in range(1, senders + 1):
            self.host(s1, f"10.0.0.{number}")
        self.host(s1, f"10.0.0.{senders + 1}", limit=125_000, rate=200_000_000)
        self.elephants = min(8, senders)

    @property
    def loads(self):
        last = max(number for _, number in self.ports if number < FAR)
        found = {}
        for key in self.ports:
            if key[1] == last:
                found[key] = (194e6, 4e6)
            else:
                elephant = key[1] <= self.elephants
                found[key] = (3e5, 23e6) if elephant else (8e4, 9e6 * self.burst)
        return found


class FarIncast(Incast):
    """The same; the queue of the switch above is governed as well, by what arrives by the last port."""

    def __init__(self):
        super().__init__(senders=4)
        (key, row), *_ = [each for each in self.ports.items() if each[1]["limit_bytes"]]
        far = {**row, "port": FAR + key[1], "role": "far", "far_of": key[1], "name": f"{row['name']}@far"}
        self.ports[key[0], FAR + key[1]] = far


class Hostile(Incast):
    """Names and texts from the network may contain anything."""

    NAME = "<img src=x onerror=\"document.title='owned'\">"

    def __init__(self):
        super().__init__(senders=4)
        for row in self.ports.values():
            row["name"] = self.NAME
        for host in self.hosts[:2]:
            host["addresses"] = [self.NAME]
        self.policy = self.NAME
        self.event("loss", self.NAME, next(iter(self.ports.values())))

    def policy_answer(self):
        return {**super().policy_answer(), "policy": self.NAME}

    def gif(self):
        return Deadlines.row(self, 1, self.NAME, 0.5)


def _tenant(name, weight, ports):
    sums = {
        field: sum(port[field] for port in ports)
        for field in ("flows", "goodput_bps", "bytes", "floor_broken")
    }
    hosts = [] if name == "others" else ["10.0.0.0/28"]
    return {"name": name, "hosts": hosts, "weight": weight, **sums, "ports": ports}


class Tenants(Incast):
    """Two tenants at the receiver's port; a third one has not sent."""

    def tenants(self):
        (key, row), *_ = [each for each in self.ports.items() if each[1]["limit_bytes"]]
        about = {"dpid": key[0], "port": key[1], "name": row["name"], "bytes": 9_000_000, "acks": 900}
        blue = {
            **about,
            "flows": 4,
            "goodput_bps": 126_000_000,
            "share": 0.6667,
            "pool_bytes": 40_000,
            "floor_broken": 0,
        }
        red = {
            **about,
            "flows": 40,
            "goodput_bps": 62_000_000,
            "share": 0.3333,
            "pool_bytes": 20_000,
            "floor_broken": 7,
        }
        found = [("blue", 2, [blue]), ("idle", 1, []), ("red", 1, [red]), ("others", 1, [])]
        return [_tenant(*each) for each in found]


class Deadlines(Incast):
    """An incast under SED: flows have deadlines."""

    def __init__(self, count=8):
        super().__init__(policy="sed")
        self.count = count

    @staticmethod
    def row(scene, number, source, remaining, state="open"):
        at = scene.hosts[-1]["at"]
        size = 12_000_000
        return [
            {
                "dpid": at[0],
                "port": at[1],
                "priority": number,
                "src": source,
                "dst": scene.hosts[-1]["addresses"][0],
                "sport": 40_000 + number,
                "dport": 5001,
                "age_s": 1.5,
                "size_bytes": size,
                "remaining_bytes": size * max(0, 10 - number) // 12,
                "deadline_s": 4.0,
                "remaining_s": remaining,
                "state": state,
            }
        ]

    def gif(self):
        since = (time.time() - self.started) % 30
        rows = []
        for number in range(1, self.count + 1):
            remaining = round(number * 4 - since, 3)
            state = "open" if remaining > 0 else ("missed" if number % 3 == 0 else "met")
            source = self.hosts[number % (len(self.hosts) - 1)]["addresses"][0]
            rows += self.row(self, number, source, remaining, state)
        return rows


class LeafSpine(Scene):
    """Two leaves, two spines, 16 hosts; the last host receives."""

    def __init__(self, leaves=2, spines=2, hosts=8):
        super().__init__()
        self.edge = [self.switch(number, f"l{number}") for number in range(1, leaves + 1)]
        self.above = [
            self.switch(number, f"p{number - leaves}") for number in range(leaves + 1, leaves + spines + 1)
        ]
        self.uplinks = {}
        count = 0
        for leaf in self.edge:
            for _ in range(hosts):
                count += 1
                last = count == leaves * hosts
                options = {"limit": 125_000, "rate": 200_000_000} if last else {}
                self.host(leaf, f"10.0.0.{count}", **options)
            for spine in self.above:
                self.uplinks[leaf, spine] = self.link(leaf, spine, limit=125_000, rate=400_000_000)

    @property
    def loads(self):
        found, receiver = {}, tuple(self.hosts[-1]["at"])
        home = receiver[0]
        for host in self.hosts:
            key = tuple(host["at"])
            found[key] = (196e6, 5e6) if key == receiver else (2e5, 13e6)
        for index, spine in enumerate(self.above):
            for leaf in self.edge:
                up, down = self.uplinks[leaf, spine]
                share = (58e6, 44e6)[index % 2] if leaf != home else 2e6
                back = 2e6 if leaf != home else (58e6, 44e6)[index % 2] * (len(self.edge) - 1)
                found[tuple(up)] = (share, back)
                found[tuple(down)] = (back, share)
        return found

    def path(self, source, number):
        leaf, home = self.hosts[source]["at"][0], self.hosts[-1]["at"]
        if leaf == home[0]:
            return [home]
        spine = self.above[number % len(self.above)]
        return [self.uplinks[leaf, spine][0], self.uplinks[home[0], spine][1], home]


class FatTree(Scene):
    """k = 4: 20 switches, 16 hosts."""

    def __init__(self):
        super().__init__()
        k, half = 4, 2
        cores = [self.switch(1 + number, f"c{number + 1}") for number in range(half * half)]
        number, count = len(cores), 0
        for pod in range(k):
            pod_switches = []
            for layer in ("a", "e"):
                row = []
                for index in range(half):
                    number += 1
                    row.append(self.switch(number, f"{layer}{pod * half + index + 1}"))
                pod_switches.append(row)
            above, edge = pod_switches
            for index, switch in enumerate(above):
                for core in cores[index * half : (index + 1) * half]:
                    self.link(switch, core, limit=125_000, rate=200_000_000)
            for switch in edge:
                for _ in range(half):
                    count += 1
                    self.host(
                        switch, f"10.{pod}.{edge.index(switch)}.{count}", limit=125_000, rate=200_000_000
                    )
                for up in above:
                    self.link(switch, up, limit=125_000, rate=200_000_000)

    @property
    def loads(self):
        found = dict.fromkeys(self.ports, (2000, 2000))
        for index, host in enumerate(self.hosts):
            found[tuple(host["at"])] = (195e6, 5e6) if index == 15 else (2e5, 13e6)
        for index, link in enumerate(self.links):
            up, down = (11e6, 1e6) if index % 3 else (60e6, 40e6)
            found[tuple(link["a"])] = (up, down)
            found[tuple(link["b"])] = (down, up)
        return found


SCENES = {
    "incast": Incast,
    "leafspine": LeafSpine,
    "fattree": FatTree,
    "deadlines": Deadlines,
    "hostile": Hostile,
    "empty": Scene,
}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        fake, url = self.server.fake, urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        fake.requests.append(self.path)
        if url.path == "/":
            self._file("index.html")
        elif url.path.startswith("/page/"):
            self._file(url.path.removeprefix("/page/"))
        elif url.path == "/v1/live":
            self._live(fake)
        elif url.path == "/v1/flows":
            self._json(fake.scene.flows(query))
        elif url.path == "/v1/policy":
            self._json(fake.scene.policy_answer())
        elif url.path == "/v1/events":
            since = int(query.get("since", 0))
            found = [event for event in fake.scene.events if event["id"] > since]
            self._json({"events": found[-200:], "last": fake.scene.last_event, "limit": 200})
        else:
            self._refuse(404, "Not Found", "no such thing")

    def _file(self, name):
        if name not in {path.name for path in PAGE.iterdir()}:
            self._refuse(404, "Not Found", "no such file")
            return
        kind = "text/javascript" if name.endswith(".js") else mimetypes.guess_type(name)[0]
        self._send((PAGE / name).read_bytes(), kind)

    def _refuse(self, status, title, detail):
        self._json({"type": "about:blank", "title": title, "status": status, "detail": detail}, status)

    def _json(self, answer, status=200):
        self._hold(rest_answers.fault(self.path, answer, status))
        kind = "application/json" if status == 200 else "application/problem+json"
        self._send(json.dumps(answer).encode(), kind, status)

    def _send(self, body, kind, status=200):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", CSP)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    def _live(self, fake):
        if fake.full:
            self._refuse(503, "Service Unavailable", "8 streams are open, which is the limit")
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.close_connection = True
        self.end_headers()
        last_id = fake.scene.last_event
        try:
            if fake.early:
                fake.early()
                self.wfile.write(self._event(fake.scene.events[-1]).encode())
            while not fake.stopping:
                if fake.silent:
                    time.sleep(0.05)
                    continue
                with fake.lock:
                    text = f"event: state\ndata: {self._streamed('state', fake.scene.frame())}\n\n"
                    for event in fake.scene.events:
                        if event["id"] > last_id:
                            last_id = event["id"]
                            text += self._event(event)
                self.wfile.write(text.encode())
                self.wfile.flush()
                time.sleep(INTERVAL)
        except OSError:
            pass  # the page was closed

    def _event(self, event):
        return f"event: event\nid: {event['id']}\ndata: {self._streamed('event', event)}\n\n"

    def _streamed(self, name, answer):
        self._hold(rest_answers.unlike(rest_answers.STREAMED[name], answer))
        return json.dumps(answer)

    def _hold(self, fault):
        if fault:
            self.server.fake.faults.append(fault)

    def log_message(self, *_args):
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, *args):
        super().__init__(*args)
        self.connections = []

    def process_request(self, request, address):
        self.connections.append(request)
        super().process_request(request, address)

    def handle_error(self, *_args):
        pass  # browsers break off connections


class FakeController:
    """Serves a scene; `stop` and `start` simulate a controller that is restarted at the same port."""

    def __init__(self, scene, port=0):
        self.scene = scene
        self.port = port
        self.lock = threading.Lock()
        self.stopping = False
        self.silent = False  # connected, without sending anything
        self.full = False  # no more streams
        self.early = None  # called when a stream is open, before its first state
        self.requests = []
        self.faults = []  # where an answer differed from the schema
        self._server = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/"

    def start(self):
        self.stopping = False
        self._server = _Server(("127.0.0.1", self.port), _Handler)
        self._server.fake = self
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        threading.Thread(target=self._run, daemon=True).start()
        return self

    def _run(self):
        while not self.stopping:
            with self.lock:
                self.scene.step(time.time())
            time.sleep(INTERVAL)

    def stop(self):
        self.stopping = True
        self._server.shutdown()
        self._server.server_close()
        # A process that dies closes all its connections.
        for each in self._server.connections:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


if __name__ == "__main__":
    served = FakeController(SCENES[sys.argv[1] if len(sys.argv) > 1 else "incast"](), 8080).start()
    print(served.url)
    threading.Event().wait()
