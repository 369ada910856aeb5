// SPDX-License-Identifier: GPL-2.0-only
#include "switch.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "ns3/ipv4-header.h"
#include "ns3/simulator.h"
#include "ns3/tcp-header.h"

using namespace ns3;

namespace
{

constexpr uint16_t IPV4 = 0x0800;
constexpr uint32_t FRAME = 1514;
constexpr uint32_t IP_HEADER = 20, TCP_HEADERS = 60;
constexpr uint32_t IP_AT = ETHERNET, TCP_AT = ETHERNET + IP_HEADER;
constexpr uint32_t LENGTH_AT = IP_AT + 2, SOURCE_AT = IP_AT + 12, DESTINATION_AT = IP_AT + 16;
constexpr uint32_t DOFF_AT = TCP_AT + 12, FLAGS_AT = TCP_AT + 13, WINDOW_AT = TCP_AT + 14;
constexpr uint8_t SYN = 2;
/* The hosts of ns-3 announce no MSS; those of Linux do, and the program counts in it. */
constexpr uint8_t MSS_OPTION[] = {2, 4, 1460 >> 8, 1460 & 255};
/* The clock of the programs is never 0. */
constexpr uint64_t EPOCH_NS = 1'000'000'000'000;

uint64_t Clock()
{
	return EPOCH_NS + Simulator::Now().GetNanoSeconds();
}

uint32_t Word(const uint8_t *at)
{
	uint32_t word;

	std::memcpy(&word, at, sizeof(word));
	return word;
}

uint16_t Half(const uint8_t *at)
{
	return at[0] << 8 | at[1];
}

void PutHalf(uint8_t *at, uint16_t value)
{
	at[0] = value >> 8;
	at[1] = value;
}

/* The same for both directions of a connection. */
uint32_t PathHash(uint32_t source, uint32_t destination, uint32_t ports)
{
	uint64_t hash = (uint64_t)(source ^ destination) << 16 ^ (ports ^ ports >> 16);

	hash *= 0x9E3779B97F4A7C15;
	return hash >> 33;
}

/* The packet with another window or other flags: what the programs change in segments. */
void Rewrite(Ptr<Packet> packet, uint16_t window, uint8_t flags)
{
	Ipv4Header ip;
	TcpHeader tcp;

	packet->RemoveHeader(ip);
	packet->RemoveHeader(tcp);
	tcp.SetWindowSize(window);
	tcp.SetFlags(flags);
	packet->AddHeader(tcp);
	packet->AddHeader(ip);
}

void Mark(Ptr<Packet> packet)
{
	Ipv4Header ip;

	packet->RemoveHeader(ip);
	ip.SetEcn(Ipv4Header::ECN_CE);
	packet->AddHeader(ip);
}

} // namespace

Switch::Switch(uint64_t bucket_ns)
    : node_(CreateObject<Node>()), maps_(sim_maps_new(), sim_maps_free), ports_(1),
      random_(CreateObject<UniformRandomVariable>())
{
	sim_maps_use(maps_.get());
	sim_switch_begin(bucket_ns);
	node_->RegisterProtocolHandler(MakeCallback(&Switch::Receive, this), IPV4, nullptr);
}

uint32_t Switch::AddPort(Ptr<NetDevice> device, uint64_t rate, uint32_t buffer)
{
	uint32_t number = ports_.size();

	ports_.push_back({.device = device, .rate = rate, .buffer = buffer});
	sim_maps_use(maps_.get());
	sim_port_add(number);
	return number;
}

void Switch::AddRoute(Ipv4Address host, const std::vector<uint32_t> &ports)
{
	routes_[host.Get()] = ports;
}

void Switch::InstallLaw(uint32_t port, const std::string &law)
{
	sim_maps_use(maps_.get());
	if (sim_law_install(port, law.data(), law.size()))
		throw std::invalid_argument(
			"a window law of another size: compile the simulator again");
}

void Switch::InstallQueueLaw(uint32_t port, const std::string &law)
{
	sim_maps_use(maps_.get());
	if (sim_queue_law_install(port, law.data(), law.size()))
		throw std::invalid_argument(
			"a queue law of another size: compile the simulator again");
	ports_[port].judged = true;
}

QueueCounts Switch::Counts(uint32_t number)
{
	Port &port = ports_[number];

	Account(port);
	sim_maps_use(maps_.get());
	port.counts.program = sim_port_counts(number);
	return port.counts;
}

void Switch::Receive(Ptr<NetDevice>, Ptr<const Packet> packet, uint16_t, const Address &,
		     const Address &, NetDevice::PacketType)
{
	uint8_t head[IP_HEADER + 4];
	uint32_t source, destination, host;

	if (packet->CopyData(head, sizeof(head)) < sizeof(head))
		return;
	source = Word(head + 12);
	destination = Word(head + 16);
	host = (uint32_t)Half(head + 16) << 16 | Half(head + 18);
	auto route = routes_.find(host);
	if (route == routes_.end())
		return;
	const auto &ports = route->second;
	uint32_t path =
		ports.size() > 1 ? PathHash(source, destination, Word(head + IP_HEADER)) : 0;
	Enqueue(ports[path % ports.size()], packet->Copy());
}

/* What meets a packet at tc egress. Returns whether it may enter the queue. */
bool Switch::Program(uint32_t number, Port &port, Ptr<Packet> packet)
{
	uint8_t frame[ETHERNET + IP_HEADER + TCP_HEADERS + sizeof(MSS_OPTION)] = {};
	uint32_t len = ETHERNET + packet->GetSize(), seen;
	uint16_t window;
	uint8_t flags;

	PutHalf(frame + 12, IPV4);
	seen = ETHERNET + packet->CopyData(frame + ETHERNET, IP_HEADER + TCP_HEADERS);
	flags = frame[FLAGS_AT];
	window = Half(frame + WINDOW_AT);
	if (flags & SYN && len == seen) {
		std::memcpy(frame + seen, MSS_OPTION, sizeof(MSS_OPTION));
		seen += sizeof(MSS_OPTION);
		len += sizeof(MSS_OPTION);
		frame[DOFF_AT] += 1 << 4;
		PutHalf(frame + LENGTH_AT, Half(frame + LENGTH_AT) + sizeof(MSS_OPTION));
	}
	sim_maps_use(maps_.get());
	sim_leave(number, Clock(), frame, seen, len);
	if (Half(frame + WINDOW_AT) > window)
		throw std::logic_error("the program has raised a window");
	if (Half(frame + WINDOW_AT) != window || frame[FLAGS_AT] != flags)
		Rewrite(packet, Half(frame + WINDOW_AT), frame[FLAGS_AT]);
	if (!port.judged)
		return true;
	switch (sim_judge(number, Clock(), len, Word(frame + SOURCE_AT),
			  Word(frame + DESTINATION_AT), Word(frame + TCP_AT), frame[IP_AT + 1] & 3,
			  random_->GetInteger(0, UINT32_MAX))) {
	case SIM_DROP:
		return false;
	case SIM_MARK:
		Mark(packet);
		return true;
	default:
		return true;
	}
}

void Switch::Enqueue(uint32_t number, Ptr<Packet> packet)
{
	Port &port = ports_[number];
	uint32_t size = ETHERNET + packet->GetSize();

	if (!Program(number, port, packet))
		return;
	if (port.buffer && port.backlog + size > port.buffer) {
		port.counts.drops++;
		return;
	}
	port.packets.push_back(packet);
	Changed(number, port, port.backlog + size);
	if (!port.sends)
		Send(number);
}

void Switch::Send(uint32_t number)
{
	Port &port = ports_[number];
	Ptr<Packet> packet = port.packets.front();
	uint64_t size = ETHERNET + packet->GetSize();

	port.packets.pop_front();
	port.sends = true;
	port.counts.packets++;
	Changed(number, port, port.backlog - size);
	/* When its last bit has left. The device itself takes no time. */
	Simulator::Schedule(NanoSeconds((size * 8'000'000'000 + port.rate - 1) / port.rate),
			    [this, number, packet] {
				    Port &left = ports_[number];

				    left.device->Send(packet, left.device->GetBroadcast(), IPV4);
				    Sent(number);
			    });
}

void Switch::Sent(uint32_t number)
{
	ports_[number].sends = false;
	if (!ports_[number].packets.empty())
		Send(number);
}

void Switch::Account(Port &port)
{
	uint64_t now = Clock(), spent = port.changed_ns ? now - port.changed_ns : 0;

	port.counts.byte_ns += spent * port.backlog;
	if (spent)
		port.counts.depth_ns[port.backlog / FRAME * FRAME] += spent;
	port.changed_ns = now;
}

void Switch::Changed(uint32_t number, Port &port, uint32_t backlog)
{
	Account(port);
	port.backlog = backlog;
	sim_maps_use(maps_.get());
	sim_queue_changed(number, Clock(), backlog);
}
