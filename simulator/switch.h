/* SPDX-License-Identifier: GPL-2.0-only */
/* A switch: ports with a byte-limited FIFO each, and the program of program.h at every packet that leaves. */
#ifndef SIMULATOR_SWITCH_H
#define SIMULATOR_SWITCH_H

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ns3/ipv4-address.h"
#include "ns3/net-device.h"
#include "ns3/node.h"
#include "ns3/packet.h"
#include "ns3/random-variable-stream.h"

#include "maps.h"
#include "program.h"

/* Of a frame beyond its IP packet, bytes: what queues count too. */
constexpr uint32_t ETHERNET = 14;

/* Bytes, ns. The histogram is by multiples of a full frame. */
struct QueueCounts {
	uint64_t byte_ns = 0;
	uint64_t packets = 0;
	uint64_t drops = 0; /* for want of room */
	std::map<uint32_t, uint64_t> depth_ns;
	sim_counts program = {};
};

class Switch
{
      public:
	explicit Switch(uint64_t bucket_ns);

	/* A port with this rate, bit/s, and buffer, bytes; 0: as much as comes. Returns its number. */
	uint32_t AddPort(ns3::Ptr<ns3::NetDevice> device, uint64_t rate, uint32_t buffer);
	/* Packets to this host leave by one of these ports, all of a connection by the same one. */
	void AddRoute(ns3::Ipv4Address host, const std::vector<uint32_t> &ports);
	/* Raises std::invalid_argument if the law has another size. */
	void InstallLaw(uint32_t port, const std::string &law);
	void InstallQueueLaw(uint32_t port, const std::string &law);

	ns3::Ptr<ns3::Node> node() const
	{
		return node_;
	}
	QueueCounts Counts(uint32_t port);

      private:
	struct Port {
		ns3::Ptr<ns3::NetDevice> device;
		uint64_t rate;
		uint32_t buffer;
		bool judged = false;
		std::deque<ns3::Ptr<ns3::Packet>> packets;
		uint32_t backlog = 0;
		uint64_t changed_ns = 0;
		bool sends = false;
		QueueCounts counts;
	};

	void Receive(ns3::Ptr<ns3::NetDevice> device, ns3::Ptr<const ns3::Packet> packet,
		     uint16_t protocol, const ns3::Address &from, const ns3::Address &to,
		     ns3::NetDevice::PacketType type);
	bool Program(uint32_t number, Port &port, ns3::Ptr<ns3::Packet> packet);
	void Enqueue(uint32_t number, ns3::Ptr<ns3::Packet> packet);
	void Send(uint32_t number);
	void Sent(uint32_t number);
	void Account(Port &port);
	void Changed(uint32_t number, Port &port, uint32_t backlog);

	ns3::Ptr<ns3::Node> node_;
	std::unique_ptr<sim_maps, void (*)(sim_maps *)> maps_;
	std::vector<Port> ports_; /* number 0 is none */
	std::map<uint32_t, std::vector<uint32_t>> routes_;
	ns3::Ptr<ns3::UniformRandomVariable> random_;
};

#endif
