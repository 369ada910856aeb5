// SPDX-License-Identifier: GPL-2.0-only
#include "network.h"

#include <deque>
#include <stdexcept>

#include "ns3/data-rate.h"
#include "ns3/internet-stack-helper.h"
#include "ns3/ipv4-interface-address.h"
#include "ns3/ipv4.h"
#include "ns3/point-to-point-helper.h"
#include "ns3/string.h"

using namespace ns3;

namespace
{

/* A device of ns-3 sends a PPP header of 2 bytes; a full frame takes as long as on Ethernet at this part of the rate. */
constexpr double PPP_PART = 1502.0 / 1514.0;
/* A switch sends at the rate of its port by itself (Switch::Send), so its devices take no time. */
const char *const NO_TIME = "1000000Gb/s";
/* Hosts lose nothing by themselves. */
const char *const AMPLE = "1000000p";

void SetRate(Ptr<NetDevice> device, const DataRate &rate)
{
	device->SetAttribute("DataRate", DataRateValue(rate));
}

} // namespace

Network::Network(const Order &order)
{
	for (const auto &name : order.switches)
		switches_[name] = std::make_unique<Switch>(order["bucket_ns"]);
	for (const auto &link : order.links)
		Connect(link, order["link_delay_ns"]);
	for (const auto &law : order.laws)
		switches_.at(law.at)->InstallLaw(port(law.at, law.towards), law.bytes);
	for (const auto &law : order.queue_laws)
		switches_.at(law.at)->InstallQueueLaw(port(law.at, law.towards), law.bytes);
	AddRoutes();
}

Ptr<Node> Network::host(const std::string &name) const
{
	auto found = hosts_.find(name);

	if (found == hosts_.end())
		throw std::invalid_argument("no host " + name);
	return found->second;
}

Ipv4Address Network::address(const std::string &name) const
{
	return addresses_.at(name);
}

QueueCounts Network::Counts(const std::string &at, const std::string &towards)
{
	return switches_.at(at)->Counts(port(at, towards));
}

uint32_t Network::port(const std::string &at, const std::string &towards) const
{
	auto there = ports_.find(at);

	if (there == ports_.end() || !there->second.count(towards))
		throw std::invalid_argument("no port of " + at + " to " + towards);
	return there->second.at(towards);
}

void Network::Connect(const Link &link, uint64_t delay)
{
	PointToPointHelper helper;
	bool to_host = !switches_.count(link.other);

	if (!switches_.count(link.one))
		throw std::invalid_argument(link.one + " is no switch");
	helper.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(AMPLE));
	helper.SetDeviceAttribute("DataRate", StringValue(NO_TIME));
	helper.SetChannelAttribute("Delay", TimeValue(NanoSeconds(delay)));
	Ptr<Node> other = to_host ? Host(link.other) : switches_[link.other]->node();
	NetDeviceContainer ends = helper.Install(switches_[link.one]->node(), other);

	ports_[link.one][link.other] =
		switches_[link.one]->AddPort(ends.Get(0), link.rate, link.buffer);
	if (!to_host) {
		/* Its other end is a port of its own, with as much room. */
		ports_[link.other][link.one] =
			switches_[link.other]->AddPort(ends.Get(1), link.rate, link.buffer);
		return;
	}
	SetRate(ends.Get(1), DataRate(uint64_t(link.rate * PPP_PART)));
	Ptr<Ipv4> ip = other->GetObject<Ipv4>();
	uint32_t interface = ip->AddInterface(ends.Get(1));

	ip->AddAddress(interface,
		       Ipv4InterfaceAddress(addresses_[link.other], Ipv4Mask("255.0.0.0")));
	ip->SetUp(interface);
}

Ptr<Node> Network::Host(const std::string &name)
{
	Ptr<Node> node = CreateObject<Node>();
	InternetStackHelper stack;

	stack.SetIpv6StackInstall(false);
	stack.Install(node);
	hosts_[name] = node;
	addresses_[name] = Ipv4Address(Ipv4Address("10.0.0.0").Get() + hosts_.size());
	return node;
}

/* The shortest paths to each host, all of them. */
void Network::AddRoutes()
{
	for (const auto &[host, address] : addresses_) {
		std::map<std::string, uint32_t> distance{{host, 0}};
		std::deque<std::string> reached{host};

		while (!reached.empty()) {
			std::string next = reached.front();

			reached.pop_front();
			for (const auto &[name, neighbours] : ports_) {
				if (neighbours.count(next) && !distance.count(name)) {
					distance[name] = distance[next] + 1;
					reached.push_back(name);
				}
			}
		}
		for (const auto &[name, neighbours] : ports_) {
			std::vector<uint32_t> ways;

			for (const auto &[neighbour, number] : neighbours)
				if (distance.count(neighbour) &&
				    distance[neighbour] + 1 == distance[name])
					ways.push_back(number);
			switches_[name]->AddRoute(address, ways);
		}
	}
}
